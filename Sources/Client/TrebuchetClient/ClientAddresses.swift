internal import Transports

/// The transports of a client to its server: one, or several that lead to the same actors.
struct ClientAddresses: Sendable {
    private let transports: [any ClientTransport]
    /// A random start index, so that clients with the same addresses start at different ones.
    private let first: Int

    /// Creates a list of transports.
    ///
    /// - Parameter transports: at least one.
    init(_ transports: [any ClientTransport]) {
        precondition(!transports.isEmpty, "a client requires at least one transport")
        self.transports = transports
        first = Int.random(in: 0..<transports.count)
    }

    var count: Int { transports.count }
    var loop: any EventLoop { transports[0].clientLoop }
    /// The addresses for error messages.
    var name: String { transports.map(\.address).joined(separator: ", ") }
    var identifyServer: Bool { transports.allSatisfy(\.addressIdentifiesServer) }

    /// Returns the transport of an attempt.
    ///
    /// - Parameter attempt: the number of the attempt, from 1.
    func transport(of attempt: Int) -> any ClientTransport { transports[(first + attempt - 1) % transports.count] }
}
