import Testing

/// Lets other tasks run until the condition holds; records an issue after two minutes.
func eventually(
    _ what: Comment, isolation: isolated (any Actor)? = #isolation,
    sourceLocation: SourceLocation = #_sourceLocation, _ condition: () -> Bool
) async {
    let deadline = ContinuousClock.now + .seconds(120)
    while !condition() {
        guard ContinuousClock.now < deadline else {
            Issue.record("did not happen in two minutes: \(what)", sourceLocation: sourceLocation)
            return
        }
        await Task.yield()
    }
}
