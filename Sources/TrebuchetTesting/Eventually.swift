/// Asks again and again, letting other tasks run in between, until the condition holds.
///
/// - Returns: false when it did not hold within `limit`.
package func eventually(
    within limit: Duration = .seconds(10), isolation: isolated (any Actor)? = #isolation,
    _ condition: () async throws -> Bool
) async rethrows -> Bool {
    let deadline = ContinuousClock.now + limit
    while try await !condition() {
        guard ContinuousClock.now < deadline else { return false }
        await Task.yield()
    }
    return true
}
