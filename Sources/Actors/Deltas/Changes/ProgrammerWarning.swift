internal import Platform
internal import Synchronization

/// A warning on standard error about a probable programming error. Each text is written once, and the process continues.
enum ProgrammerWarning {
    /// The maximum number of texts that are remembered and written.
    private static let limit = 100
    private static let reportedTexts = Mutex<Set<String>>([])

    /// Writes a warning, once for each text.
    ///
    /// - Parameter text: built by the program itself, never from data of a peer.
    static func reportOnce(_ text: String) {
        let isNew = reportedTexts.withLock { $0.count < limit && $0.insert(text).inserted }
        guard isNew else { return }
        StandardStream.error.write(soon: "trebuchet: \(text)")
    }
}
