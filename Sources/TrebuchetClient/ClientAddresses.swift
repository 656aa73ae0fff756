internal import Transports

/// The ways of a client to its server: one, or several of which each leads to what serves the same actors.
struct ClientAddresses: Sendable {
    private let transports: [any ClientTransport]
    /// Clients that know the same addresses begin at different ones.
    private let first: Int

    /// - Parameter transports: at least one.
    init(_ transports: [any ClientTransport]) {
        precondition(!transports.isEmpty, "a client needs a transport")
        self.transports = transports
        first = Int.random(in: 0..<transports.count)
    }

    var count: Int { transports.count }
    var loop: any EventLoop { transports[0].clientLoop }
    /// As they stand in errors.
    var name: String { transports.map(\.address).joined(separator: ", ") }
    var identifyServer: Bool { transports.allSatisfy(\.addressIdentifiesServer) }

    /// - Parameter attempt: from 1.
    func transport(of attempt: Int) -> any ClientTransport { transports[(first + attempt - 1) % transports.count] }
}
