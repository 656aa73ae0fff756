import Testing

/// Lets other tasks run until the condition holds; gives up (and records an issue) after forty seconds.
func eventually(
    _ what: Comment, isolation: isolated (any Actor)? = #isolation,
    sourceLocation: SourceLocation = #_sourceLocation, _ condition: () -> Bool
) async {
    let deadline = ContinuousClock.now + .seconds(40)
    while !condition() {
        guard ContinuousClock.now < deadline else {
            Issue.record("did not happen in forty seconds: \(what)", sourceLocation: sourceLocation)
            return
        }
        await Task.yield()
    }
}
