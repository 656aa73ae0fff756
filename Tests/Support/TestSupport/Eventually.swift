/// Evaluates the condition repeatedly, yielding to other tasks in between, until it holds.
///
/// - Returns: false when it did not hold within `limit`.
package func eventually(
    within limit: Duration = .seconds(120), isolation: isolated (any Actor)? = #isolation,
    _ condition: () async throws -> Bool
) async rethrows -> Bool {
    let deadline = ContinuousClock.now + limit
    var looks = 0
    while try await !condition() {
        guard ContinuousClock.now < deadline else { return false }
        looks += 1
        // After 100 attempts it sleeps in between, so that polling does not slow down the awaited work.
        if looks < 100 { await Task.yield() } else { try? await Task.sleep(for: .milliseconds(1)) }
    }
    return true
}
