#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "sandboxes/environment.hpp"
#include "sandboxes/identity.hpp"
#include "sandboxes/lifecycle_events.hpp"
#include "sandboxes/result.hpp"

/// The life of one sandbox, decided. `decide` answers what somebody asks, `react` what the platform reports,
/// `evolve` what a stored event means. All three are pure: the shell stores the state they give, appends the
/// events, performs the effects and reports their outcome as signals.
namespace sandboxes::lifecycle {

// ---- What is kept

/// What `create` was given, as far as it was given.
struct CreateInput {
  std::string instance_type;
  std::optional<SleepAfter> sleep_after;
  std::optional<bool> keep_alive;
  std::optional<EnvMap> env;
  bool operator==(const CreateInput&) const = default;
};

/// The durable birth record. Written once, by `create`.
struct Record {
  Identity identity;
  CreateInput input;
  std::int64_t created_at = 0;  ///< of the first attempt, ms since the epoch
  bool operator==(const Record&) const = default;
};

/// The newest finished snapshot: what of its manifest the decider needs, and the manifest itself.
struct SnapshotHandle {
  std::string id;
  std::int64_t expires_at = 0;  ///< ms since the epoch; from then on the workspace is empty
  std::string manifest;         ///< JSON, for the shell
  bool operator==(const SnapshotHandle&) const = default;
};

struct Config {
  EnvMap env;
  std::optional<SleepAfter> sleep_after;
  bool keep_alive = false;
  std::int64_t version = 0;  ///< counts `configured`, so that a container knows whether it has the newest env
  bool operator==(const Config&) const = default;
};

enum class SleepReason : std::uint8_t { asked, idle, restart };
enum class SetUpStep : std::uint8_t { restore, env, session, git };

// What the container does. `announced` says whether its `started` was recorded.

struct Down {
  bool operator==(const Down&) const = default;
};
struct Booting {
  std::int64_t incarnation = 0;
  bool announced = false;
  bool operator==(const Booting&) const = default;
};
/// Up, and the workspace is not there yet.
struct Fresh {
  std::int64_t incarnation = 0;
  bool operator==(const Fresh&) const = default;
};
struct SettingUp {
  std::int64_t incarnation = 0;
  SetUpStep step = SetUpStep::restore;
  std::int64_t attempt = 1;
  std::int64_t config_version = 0;
  bool operator==(const SettingUp&) const = default;
};
/// Provisioned: commands run, and only from here is a snapshot taken.
struct Ready {
  std::int64_t incarnation = 0;
  std::int64_t config_version = 0;  ///< the env that it has, or gets while `applying`
  bool applying = false;
  bool operator==(const Ready&) const = default;
};
struct Snapshotting {
  std::int64_t incarnation = 0;
  std::int64_t config_version = 0;
  SleepReason reason = SleepReason::asked;
  bool operator==(const Snapshotting&) const = default;
};
struct TearingDown {
  std::int64_t incarnation = 0;
  std::int64_t config_version = 0;
  bool announced = true;
  bool was_ready = false;
  bool operator==(const TearingDown&) const = default;
};

using Container = std::variant<Down, Booting, Fresh, SettingUp, Ready, Snapshotting, TearingDown>;

// The sandbox as a whole.

struct Unborn {
  bool operator==(const Unborn&) const = default;
};
/// Recorded, but `created` is not on the stream yet.
struct Pending {
  Record record;
  bool attempt = false;  ///< volatile: an attempt runs in this object
  bool operator==(const Pending&) const = default;
};
struct Live {
  Record record;
  Config config;
  std::optional<SnapshotHandle> snapshot;
  Container container;
  bool operator==(const Live&) const = default;
};
/// Its container is torn down; the tombstone follows. There is no way back.
struct Destroying {
  Record record;
  std::int64_t incarnation = 0;
  bool announced = false;  ///< a `started` has no `stopped` yet
  bool torn_down = false;
  bool working = false;  ///< volatile: the tear-down runs in this object
  bool operator==(const Destroying&) const = default;
};
struct Destroyed {
  Record record;
  bool operator==(const Destroyed&) const = default;
};

using Life = std::variant<Unborn, Pending, Live, Destroying, Destroyed>;

enum class OutboxStatus : std::uint8_t { idle, appending, failed };
enum class FailureKind : std::uint8_t { boot, restore, set_up, tear_down };

/// Why the newest attempt on an incarnation came to nothing. Volatile: only for those who wait.
struct Failure {
  std::int64_t incarnation = 0;
  FailureKind kind = FailureKind::boot;
  std::string step;
  std::string reason;
  bool operator==(const Failure&) const = default;
};

/// The newest snapshot that was asked for and came to nothing. Volatile: only for those who wait.
struct SnapshotLoss {
  std::int64_t incarnation = 0;
  std::string reason;
  bool operator==(const SnapshotLoss&) const = default;
};

/// Everything about a sandbox. Volatile fields start anew with each `ObjectLoaded`; the rest is stored.
struct State {
  Life life;
  std::int64_t incarnation = 0;  ///< the newest that was given out
  std::vector<Event> outbox;     ///< durable events that are not on the stream yet, oldest first
  std::int64_t in_flight = 0;    ///< volatile: admitted commands that still run
  OutboxStatus outbox_status = OutboxStatus::idle;  ///< volatile
  std::string outbox_error;                         ///< volatile
  std::optional<Failure> failure;                   ///< volatile
  std::optional<SnapshotLoss> lost_snapshot;        ///< volatile
  bool operator==(const State&) const = default;
};

// ---- What is asked

struct Create {
  CreateInput input;
  bool allow_raw_secrets = false;
};
/// Anything that needs a living sandbox and touches no container.
struct AssertCreated {};
struct Start {};
struct Sleep {};
struct Restart {};
struct Kill {};
struct Destroy {};
struct SetEnvVars {
  EnvChanges changes;
  bool allow_raw_secrets = false;
};
struct SetSleepAfter {
  SleepAfter value;
};
struct SetKeepAlive {
  bool keep_alive = false;
};
/// A method of the SDK: waits until the workspace is there. Every admission ends with `WorkFinished`.
struct Admit {
  std::string method;
};

using Request = std::variant<Create, AssertCreated, Start, Sleep, Restart, Kill, Destroy, SetEnvVars,
                             SetSleepAfter, SetKeepAlive, Admit>;

struct Command {
  Request request;
  std::optional<Identity> identity;   ///< whom the caller means; must be who this is
  std::optional<std::int64_t> since;  ///< from `Wait`, when the same command is asked again
};

// ---- What is reported. Signals that answer an effect carry its incarnation, and are dropped when that is
// over.

/// A new object instance has loaded its state.
struct ObjectLoaded {};
/// The SDK's onStart; it may come more than once a life.
struct ContainerStarted {};
/// The SDK's onStop, or its onError with no container left; may come late.
struct ContainerStopped {};
struct IdleExpired {};
struct BootDone {
  std::int64_t incarnation = 0;
};
struct SnapshotDone {
  std::int64_t incarnation = 0;
  std::string id;
  std::int64_t created_at = 0;
  std::int64_t ttl_seconds = 0;
  std::string manifest;
};
struct SnapshotFailed {
  std::int64_t incarnation = 0;
  std::string error;
  bool presigned = false;  ///< by the presigned transfer: the binding is tried before giving up
};
struct RestoreDone {
  std::int64_t incarnation = 0;
};
struct RestoreFailed {
  std::int64_t incarnation = 0;
  std::string error;
  bool expired = false;
  bool presigned = false;  ///< by the presigned transfer: the binding is tried before giving up
};
struct EnvApplied {
  std::int64_t incarnation = 0;
};
struct SessionOpened {
  std::int64_t incarnation = 0;
};
struct GitConfigured {
  std::int64_t incarnation = 0;
};
struct TornDown {
  std::int64_t incarnation = 0;
};
/// A boot, applyEnv, openSession, configureGit or tearDown that threw.
struct EffectFailed {
  std::int64_t incarnation = 0;
  std::string effect;
  std::string error;
  bool interrupted = false;  ///< by a container that went away, so that nothing can have run
};
struct WorkFinished {};
struct EventsAppended {
  std::vector<std::string> keys;
};
struct AppendFailed {
  std::string error;
};

using Signal =
    std::variant<ObjectLoaded, ContainerStarted, ContainerStopped, IdleExpired, BootDone, SnapshotDone,
                 SnapshotFailed, RestoreDone, RestoreFailed, EnvApplied, SessionOpened, GitConfigured,
                 TornDown, EffectFailed, WorkFinished, EventsAppended, AppendFailed>;

/// What only the shell can know at the moment of a call.
struct Context {
  std::int64_t now = 0;                        ///< ms since the epoch
  std::string hosted_instance_type;            ///< of the class that asks
  bool container_running = false;              ///< `ctx.container.running`
  std::optional<std::string> container_end{};  ///< why the newest one ended, if known
};

// ---- What is to be done

struct Boot {
  std::int64_t incarnation = 0;
  bool operator==(const Boot&) const = default;
};
struct Restore {
  std::int64_t incarnation = 0;
  SnapshotHandle handle;
  bool binding_only = false;
  bool operator==(const Restore&) const = default;
};
/// Give the container this env, with what is discovered below it.
struct ApplyEnv {
  std::int64_t incarnation = 0;
  EnvMap env;
  bool operator==(const ApplyEnv&) const = default;
};
struct OpenSession {
  std::int64_t incarnation = 0;
  std::int64_t delay_ms = 0;
  bool operator==(const OpenSession&) const = default;
};
struct ConfigureGit {
  std::int64_t incarnation = 0;
  bool operator==(const ConfigureGit&) const = default;
};
struct TakeSnapshot {
  std::int64_t incarnation = 0;
  bool binding_only = false;
  bool operator==(const TakeSnapshot&) const = default;
};
struct TearDown {
  std::int64_t incarnation = 0;
  bool operator==(const TearDown&) const = default;
};
/// Tell the SDK its idle time. Also after every load: it lives in the SDK's memory.
struct ApplySettings {
  std::optional<SleepAfter> sleep_after;
  bool keep_alive = false;
  bool operator==(const ApplySettings&) const = default;
};
/// End this object instance at once. The container lives on.
struct AbortObject {
  bool operator==(const AbortObject&) const = default;
};

using Effect = std::variant<Boot, Restore, ApplyEnv, OpenSession, ConfigureGit, TakeSnapshot, TearDown,
                            ApplySettings, AbortObject>;

/// The command is done, or may run.
struct Proceed {
  bool operator==(const Proceed&) const = default;
};
/// Ask again after the next change, with this `since`.
struct Wait {
  std::int64_t since = 0;
  bool operator==(const Wait&) const = default;
};

struct Decision {
  State state;
  std::vector<Event> events;    ///< to append now, in this order
  std::vector<Effect> effects;  ///< to start now
  std::variant<Proceed, Wait> reply;
  bool persist = false;  ///< whether a stored part of the state changed
  bool changed = false;  ///< whether anything did: who waits has to ask again
};

/// A method that our classes refuse, and what to use instead.
struct Fence {
  std::string_view method;
  std::string_view advice;
};

[[nodiscard]] State initial_state();
[[nodiscard]] Result<Decision> decide(State state, const Command& command, const Context& context);
/// Total: a signal that does not fit, or answers for an older incarnation, changes nothing.
[[nodiscard]] Decision react(State state, const Signal& signal, const Context& context);
/// What an event that is on the stream means for the state; unknown names mean nothing.
[[nodiscard]] State evolve(State state, std::string_view name, const Payload& payload);
[[nodiscard]] std::span<const Fence> fences();

}  // namespace sandboxes::lifecycle
