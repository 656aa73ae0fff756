internal import Platform
internal import Synchronization

/// What a program does that its author cannot have meant, and that is no reason to end it: a line on standard error, once.
enum ProgrammerNote {
    /// No more are remembered, or written.
    private static let most = 100
    private static let told = Mutex<Set<String>>([])

    /// - Parameter text: of the program itself, never of a peer.
    static func tell(_ text: String) {
        let isNew = told.withLock { $0.count < most && $0.insert(text).inserted }
        guard isNew else { return }
        StandardStream.error.write(soon: "trebuchet: \(text)")
    }
}
