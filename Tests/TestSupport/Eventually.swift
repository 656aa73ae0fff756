/// Asks again and again, letting other tasks run in between, until the condition holds.
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
        // What takes longer is not to be kept from its work by being looked at.
        if looks < 100 { await Task.yield() } else { try? await Task.sleep(for: .milliseconds(1)) }
    }
    return true
}
