/** The behaviour of workerd that everything here is written and tested for: on the engine, under wrangler and deployed. */
export const compatibilityDate = "2026-06-01";
export const compatibilityFlags = ["nodejs_compat"];
