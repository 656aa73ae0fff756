/// Keeps a client connected as long as somebody needs it: the client itself, references to actors, and streams. When the last
/// of them goes, the connection is closed.
final class ClientHold: Sendable {
    let core: ClientCore

    init(_ core: ClientCore) { self.core = core }

    deinit {
        let core = core
        core.system?.takeApart()
        Task { await core.connection.close() }
    }
}
