internal import Distributed
package import Transports

/// The name of an actor: one that was given with `expose(_:as:)`, or one that its system made up.
public struct TrebuchetActorID: Hashable, Sendable, Codable, CustomStringConvertible {
    /// As it was exposed, or made up by the system; compared by its bytes.
    public let id: String
    /// The loop that a local actor lives on; nil for remote actors. Loops live as long as the process, so the reference needs
    /// no counting.
    private unowned(unsafe) let loop: (any EventLoop)?
    /// The server that the actor lives at, by the number that it has given itself; 0 for an actor that lives in a client, and
    /// when it is not known.
    let server: UInt64
    let route: ActorRoute
    /// Of a reference that a client has made: the server, which keeps the client connected.
    package var remote: (any RemoteServer)? { if case .server(let server) = route { server } else { nil } }

    /// The name of an actor on the server.
    public init(_ id: String) { self.init(id, at: nil) }

    /// An actor that lives here.
    ///
    /// - Parameter server: the number of the server, 0 in a client.
    init(_ id: String, home: any EventLoop, server: UInt64) {
        self.id = id
        self.server = server
        loop = home
        route = .unknown
    }

    /// A reference to an actor that lives elsewhere.
    package init(_ id: String, at remote: (any RemoteServer)?, server: UInt64 = 0) {
        self.id = id
        self.server = server
        route = remote.map { .server($0) } ?? .unknown
        loop = nil
    }

    /// One that came to a server in a message: what it leads to is called on behalf of whoever sent it.
    private init(given id: String, server: UInt64) {
        self.id = id
        self.server = server
        route = .given
        loop = nil
    }

    /// A server's reference to an actor that lives in a client.
    init(_ reference: any ClientActor) {
        id = reference.description
        server = 0
        route = .client(reference)
        loop = nil
    }

    package var home: (any EventLoop)? { loop }

    /// Whether it is of an actor that lives here, in a client.
    var livesInClient: Bool { loop != nil && server == 0 }

    /// The executor of a local actor with this name.
    public var _executor: UnownedSerialExecutor {
        guard let loop else { fatalError("actor '\(id)' is remote: it has no executor here") }
        return loop.asUnownedSerialExecutor()
    }

    /// By their bytes: texts that Swift takes for equal may be other names.
    public static func == (left: Self, right: Self) -> Bool { ActorName(left.id) == ActorName(right.id) }
    public func hash(into hasher: inout Hasher) { hasher.combine(ActorName(id)) }
    public var description: String { id }

    private enum CodingKeys: String, CodingKey { case id, client }

    /// A string; an object with `id`, `host` and `port`, as older clients write it, is understood too. An object with `client` is
    /// of an actor that lives in the client whose call it comes with.
    public init(from decoder: any Decoder) throws {
        let system = decoder.userInfo[.actorSystemKey] as? TrebuchetActorSystem
        let id: String
        if let container = try? decoder.singleValueContainer(), let text = try? container.decode(String.self) {
            id = text
        } else {
            let members = try decoder.container(keyedBy: CodingKeys.self)
            if let name = try members.decodeIfPresent(String.self, forKey: .client) {
                guard let host = system?.host else { throw Self.notTaken }
                self.init(try host.clientActor(name))
                return
            }
            id = try members.decode(String.self, forKey: .id)
        }
        if system?.host != nil {
            self.init(given: id, server: system?.serverNumber ?? 0)
        } else {
            self.init(id, at: system?.server)
        }
    }

    /// A reference to an actor that lives in a client, where none is expected.
    package static var notTaken: TrebuchetError {
        TrebuchetError(
            .invalidArguments,
            "a reference to an actor that lives in a client is taken of that client alone, in a call, after a hello that says "
                + "who it is")
    }

    /// Decodes what an actor has answered: references that a client has sent are to its own actors.
    package func asGiven<Result>(_ body: () throws -> Result) rethrows -> Result {
        guard case .client(let actor) = route else { return try body() }
        return try actor.asGiven(body)
    }

    /// Throws a `TrebuchetError` when the name means nothing to who gets it: it is of an actor that lives in another client, or at
    /// another server.
    public func encode(to encoder: any Encoder) throws {
        let system = encoder.userInfo[.actorSystemKey] as? TrebuchetActorSystem
        if let refusal = system?.refusal(ofSending: self) { throw refusal }
        if let system, livesInClient {
            system.handOver(self)
            var members = encoder.container(keyedBy: CodingKeys.self)
            return try members.encode(id, forKey: .client)
        }
        var container = encoder.singleValueContainer()
        try container.encode(id)
    }
}

/// How an actor that lives elsewhere is reached.
enum ActorRoute: Sendable {
    /// Through the system that its reference belongs to; and of actors that live here.
    case unknown
    /// Nowhere but to the actor of its name, if that is here: its name came in a message, and a server lends nobody its own rights.
    case given
    /// Through a client, at its server.
    case server(any RemoteServer)
    /// Through a server, in one of its clients.
    case client(any ClientActor)
}
