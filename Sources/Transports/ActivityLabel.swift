/// What a reactor is doing, in words for the watchdog. Made once for each kind of work and never freed, so that another
/// thread may read it at any time.
package final class ActivityLabel: Sendable {
    package let text: String

    private init(_ text: String) { self.text = text }

    /// Lives as long as the process: one for each method of a type, not one for each call.
    package static func immortal(_ text: String) -> ActivityLabel {
        let label = ActivityLabel(text)
        _ = Unmanaged.passRetained(label)
        return label
    }
}
