#include "lifecycle_internal.hpp"

/// How a sandbox comes to be and how it ends.
namespace sandboxes::lifecycle {

namespace {

const std::string& path_or_given(const Command& command) {
  static const std::string unknown = "this sandbox";
  return command.identity ? command.identity->path : unknown;
}

}  // namespace

/// destroy begins with.
Result<Live*> living(Turn& turn, const Command& command) {
  const auto check = [&](const Record& record) -> Result<void> {
    if (!command.identity || *command.identity == record.identity) return {};
    return fail(IdentityMismatch{record.identity.project_id + record.identity.path,
                                 command.identity->project_id + command.identity->path});
  };
  return std::visit(
      Overloaded{
          [&](Unborn&) -> Result<Live*> { return fail(SandboxNotFound{path_or_given(command)}); },
          [&](Pending& pending) -> Result<Live*> {
            if (auto same = check(pending.record); !same) return propagate(same);
            return fail(CreationUnfinished{path_of(pending.record)});
          },
          [&](Live& live) -> Result<Live*> {
            if (auto same = check(live.record); !same) return propagate(same);
            return &live;
          },
          [&](Destroying& dying) -> Result<Live*> {
            if (auto same = check(dying.record); !same) return propagate(same);
            return fail(SandboxDestroyed{path_of(dying.record)});
          },
          [&](Destroyed& dead) -> Result<Live*> {
            if (auto same = check(dead.record); !same) return propagate(same);
            return fail(SandboxDestroyed{path_of(dead.record)});
          },
      },
      turn.state.life);
}

Result<Reply> once_recorded(Turn& turn, const Command& command, const std::string& path) {
  if (turn.state.outbox.empty()) return Reply{Proceed{}};
  if (turn.state.outbox_status == OutboxStatus::failed && command.since) {
    return fail(StreamUnavailable{path, turn.state.outbox_error});
  }
  return Reply{Wait{command.since.value_or(turn.state.incarnation)}};
}

namespace {

ConfiguredPayload configured_at_birth(const CreateInput& input) {
  ConfiguredPayload payload{std::nullopt, input.sleep_after, input.keep_alive};
  if (input.env && !input.env->empty()) payload.env = EnvChanges(input.env->begin(), input.env->end());
  return payload;
}

void append_birth(Turn& turn, const Record& record) {
  const CreateInput& input = record.input;
  turn.state.outbox.clear();
  turn.record("created", "created", CreatedPayload{input.instance_type});
  auto configured = configured_at_birth(input);
  if (configured != ConfiguredPayload{}) turn.record("configured", "configured:birth", std::move(configured));
  turn.effect(ApplySettings{input.sleep_after, input.keep_alive.value_or(false)});
}

Result<Reply> resume_birth(Turn& turn, Pending& pending, const Create& create, const Command& command) {
  const std::string path = path_of(pending.record);
  if (*command.identity != pending.record.identity) {
    return fail(IdentityMismatch{pending.record.identity.project_id + path,
                                 command.identity->project_id + command.identity->path});
  }
  if (create.input.instance_type != pending.record.input.instance_type) {
    return fail(InstanceTypeMismatch{path, pending.record.input.instance_type, create.input.instance_type});
  }
  if (command.since) {
    if (turn.state.outbox_status != OutboxStatus::failed) return Reply{Wait{*command.since}};
    return fail(StreamUnavailable{path, turn.state.outbox_error});
  }
  if (pending.attempt) return fail(CreationInProgress{path});
  if (create.input != pending.record.input) return fail(CreationUnfinished{path});
  pending.attempt = true;
  append_birth(turn, pending.record);
  return Reply{Wait{turn.state.incarnation}};
}

}  // namespace

Result<Reply> decide_create(Turn& turn, const Create& create, const Command& command) {
  if (!command.identity) return fail(InvalidInput{"command.identity", "nothing", "a project id and a path"});
  if (std::holds_alternative<Unborn>(turn.state.life)) {
    if (create.input.instance_type != turn.context.hosted_instance_type) {
      return fail(InstanceTypeMismatch{command.identity->path, turn.context.hosted_instance_type,
                                       create.input.instance_type});
    }
    if (auto name = durable_object_name(*command.identity); !name) return propagate(name);
    if (auto path = check_sandbox_path(command.identity->path); !path) return propagate(path);
    if (create.input.env) {
      const EnvChanges changes(create.input.env->begin(), create.input.env->end());
      if (auto valid = merge_env({}, changes, create.allow_raw_secrets); !valid) return propagate(valid);
    }
    Record record{*command.identity, create.input, turn.context.now};
    append_birth(turn, record);
    turn.state.life = Pending{std::move(record), true};
    return Reply{Wait{0}};
  }
  if (auto* pending = std::get_if<Pending>(&turn.state.life))
    return resume_birth(turn, *pending, create, command);
  auto live = living(turn, command);
  if (!live) return propagate(live);
  // The attempt that made it is asked again until everything it wrote is on the
  // stream.
  if (command.since) return once_recorded(turn, command, path_of((*live)->record));
  return fail(SandboxExists{path_of((*live)->record)});
}

namespace {

Result<Reply> destroy_on(Turn& turn, Destroying& dying, const Command& command) {
  const std::string path = path_of(dying.record);
  if (dying.torn_down) return once_recorded(turn, command, path);
  if (dying.working) return Reply{Wait{command.since.value_or(dying.incarnation)}};
  if (command.since && turn.state.failure) {
    return tl::unexpected<Error>(failure_error(*turn.state.failure, path));
  }
  dying.working = true;
  turn.state.failure.reset();
  turn.effect(TearDown{dying.incarnation});
  return Reply{Wait{dying.incarnation}};
}

bool announced(const Container& container) {
  return std::visit(Overloaded{
                        [](const Down&) { return false; },
                        [](const Booting& c) { return c.announced; },
                        [](const TearingDown& c) { return c.announced; },
                        [](const auto&) { return true; },
                    },
                    container);
}

}  // namespace

Result<Reply> decide_destroy(Turn& turn, const Destroy&, const Command& command) {
  if (auto* dying = std::get_if<Destroying>(&turn.state.life)) {
    if (command.identity && *command.identity != dying->record.identity) {
      return propagate(living(turn, command));
    }
    return destroy_on(turn, *dying, command);
  }
  if (const auto* dead = std::get_if<Destroyed>(&turn.state.life)) {
    if (command.identity && *command.identity != dead->record.identity)
      return propagate(living(turn, command));
    return once_recorded(turn, command, path_of(dead->record));
  }
  auto live = living(turn, command);
  if (!live) return propagate(live);
  turn.note("destroy-requested");
  const bool had_started = announced((*live)->container);
  Record record = (*live)->record;
  turn.state.life = Destroying{std::move(record), turn.state.incarnation, had_started, false, true};
  turn.state.failure.reset();
  turn.effect(TearDown{turn.state.incarnation});
  return Reply{Wait{turn.state.incarnation}};
}

}  // namespace sandboxes::lifecycle
