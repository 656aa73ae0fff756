internal import Platform
internal import Transports

/// The moment until which a call may take, handed on with the task and with the calls it makes.
package enum Deadline {
    /// Nanoseconds of the monotonic clock, which no test turns on; nil when there is none.
    @TaskLocal package static var current: UInt64?
}

/// Gives every distributed call inside `body` at most `limit`, together.
///
/// A call that has no answer by then throws `TrebuchetError` with the code `timeout`, and the server cancels the task
/// that runs it. Inside a call on the server the caller's deadline holds too; the earlier one counts.
public func withDeadline<Result>(
    _ limit: Duration, isolation: isolated (any Actor)? = #isolation, _ body: () async throws -> Result
) async rethrows -> Result {
    let own = MonotonicClock.now &+ limit.nanoseconds
    let deadline = min(own, Deadline.current ?? .max)
    return try await Deadline.$current.withValue(deadline, operation: body, isolation: isolation)
}
