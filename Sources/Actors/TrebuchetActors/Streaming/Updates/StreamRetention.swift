/// The retention of one stream that deactivation of its actor would lose.
struct StreamRetention {
    /// Whether the state has changed from its initial value.
    let hasChanged: Bool
    /// Whether the stream has a subscriber, or had one that may resume.
    let isObserved: Bool
}
