/// A description of what a reactor is executing, for the watchdog. There is one for each kind of work, never freed, so that
/// another thread can read it at any time.
package final class ActivityLabel: Sendable {
    package let text: String

    private init(_ text: String) { self.text = text }

    /// Returns a label that lives as long as the process. Create one for each method of a type, not for each call.
    package static func permanent(_ text: String) -> ActivityLabel {
        let label = ActivityLabel(text)
        _ = Unmanaged.passRetained(label)
        return label
    }
}
