#include "sandboxes/catalogue.hpp"

#include "sandboxes/identity.hpp"

namespace sandboxes {

namespace {

/// Two inputs ask for one sandbox when nobody could tell the results apart.
bool same_input(const ClaimInput& left, const ClaimInput& right) {
  return left.instance_type == right.instance_type && left.sleep_after == right.sleep_after &&
         left.keep_alive.value_or(false) == right.keep_alive.value_or(false) && left.env == right.env;
}

std::string type_name_of(const ClaimInput& input) {
  return std::string(instance_type_row(input.instance_type).name);
}

Result<ClaimResolution> resolve_create(const ClaimRequest& request, const ClaimInput& input) {
  if (request.record && !request.record->creation_pending) return fail(SandboxExists{request.path});
  if (!request.claim) return ClaimResolution{ClaimOutcome::claim, std::nullopt};
  if (request.in_flight) return fail(CreationInProgress{request.path});
  const ClaimInput& claimed = request.claim->input;
  if (claimed.instance_type != input.instance_type) {
    return fail(InstanceTypeMismatch{request.path, type_name_of(claimed), type_name_of(input)});
  }
  if (!same_input(claimed, input)) return fail(CreationUnfinished{request.path});
  return ClaimResolution{ClaimOutcome::resume, request.record ? request.record->created_at : std::nullopt};
}

Result<ClaimResolution> resolve_use(const ClaimRequest& request) {
  if (!request.claim && !request.record) return fail(SandboxNotFound{request.path});
  if (!request.record || request.record->creation_pending) return fail(CreationUnfinished{request.path});
  return ClaimResolution{ClaimOutcome::use, request.record->created_at};
}

}  // namespace

Result<void> check_containers(std::string_view engine_mode) {
  if (engine_mode == "none") return fail(ContainersNotEnabled{});
  return {};
}

std::string claim_key(std::string_view path) {
  return "sandbox-create-requested:" + std::string(path);
}

Result<ClaimResolution> resolve_claim(const ClaimRequest& request) {
  if (const auto checked = check_sandbox_path(request.path); !checked) return propagate(checked);
  if (request.claim && request.claim->path != request.path) {
    return fail(IdentityMismatch{request.claim->path, request.path});
  }
  if (request.record && request.record->destroyed) return fail(SandboxDestroyed{request.path});
  return request.input ? resolve_create(request, *request.input) : resolve_use(request);
}

Result<const InstanceTypeRow*> route_claim(const std::optional<Claim>& claim, std::string_view path) {
  if (!claim) return fail(SandboxNotFound{std::string(path)});
  if (const auto checked = check_sandbox_path(claim->path); !checked) return propagate(checked);
  return &instance_type_row(claim->input.instance_type);
}

}  // namespace sandboxes
