// Puts the functions of a module in text form into another order, in place: what is alike compresses better side by side,
// and functions of one length tend to be. Those that are called most stay first, where their numbers take one byte.
import { readFileSync, writeFileSync } from "node:fs";

const KEPT = 40;
const [path] = process.argv.slice(2);
const text = readFileSync(path, "utf8").trimEnd();
// A field of the module begins in the first column; the module's own parenthesis closes the last.
const fields = text.slice(0, text.lastIndexOf(")")).split(/\n(?= \()/);
const isFunction = (field) => field.startsWith(" (func ");
const functions = fields.filter(isFunction);
const ordered = [
  ...functions.slice(0, KEPT),
  ...functions.slice(KEPT).sort((left, right) => left.length - right.length),
];
writeFileSync(path, `${[...fields.filter((field) => !isFunction(field)), ...ordered].join("\n")}\n)\n`);
