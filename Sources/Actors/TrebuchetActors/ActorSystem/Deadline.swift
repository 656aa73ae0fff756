internal import Platform
internal import Transports

/// The time at which a call expires. Child tasks and nested calls inherit it.
package enum Deadline {
    /// The deadline in nanoseconds of the monotonic clock, which tests do not replace; nil without a deadline.
    @TaskLocal package static var current: UInt64?
}

/// Limits the total time of all distributed calls inside `body` to `limit`.
///
/// A call without a response by then throws `TrebuchetError` with the code `timeout`, and the server cancels the task that runs
/// the call. Inside a call on the server the caller's deadline also applies; the earlier one counts.
public func withDeadline<Result>(
    _ limit: Duration, isolation: isolated (any Actor)? = #isolation, _ body: () async throws -> Result
) async rethrows -> Result {
    let own = MonotonicClock.now &+ limit.nanoseconds
    let deadline = min(own, Deadline.current ?? .max)
    return try await Deadline.$current.withValue(deadline, operation: body, isolation: isolation)
}
