import Testing

/// Lets other tasks run until the condition holds; gives up (and records an issue) after ten seconds.
func eventually(
    _ what: Comment, isolation: isolated (any Actor)? = #isolation,
    sourceLocation: SourceLocation = #_sourceLocation, _ condition: () -> Bool
) async {
    let deadline = ContinuousClock.now + .seconds(10)
    while !condition() {
        guard ContinuousClock.now < deadline else {
            Issue.record("did not happen in ten seconds: \(what)", sourceLocation: sourceLocation)
            return
        }
        await Task.yield()
    }
}
