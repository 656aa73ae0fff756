package import Networking

/// The name of an actor: one that was given with `expose(_:as:)`, or one that its system made up.
public struct TrebuchetActorID: Hashable, Sendable, Codable, CustomStringConvertible {
    public let id: String
    /// The reactor that a local actor lives on; nil for remote actors. Reactors live as long as the process, so the
    /// reference needs no counting.
    private unowned(unsafe) let reactor: Reactor?

    /// The name of an actor on the server.
    public init(_ id: String) {
        self.id = id
        reactor = nil
    }

    package init(_ id: String, home: Reactor?) {
        self.id = id
        reactor = home
    }

    package var home: Reactor? { reactor }

    /// The executor of a local actor with this name.
    public var _executor: UnownedSerialExecutor {
        guard let reactor else { fatalError("actor '\(id)' is remote: it has no executor here") }
        return reactor.asUnownedSerialExecutor()
    }

    /// By their bytes: texts that Swift takes for equal may be other names.
    public static func == (left: Self, right: Self) -> Bool { ActorName(left.id) == ActorName(right.id) }
    public func hash(into hasher: inout Hasher) { hasher.combine(ActorName(id)) }
    public var description: String { id }

    private enum CodingKeys: String, CodingKey { case id }

    /// A string; an object with `id`, `host` and `port`, as older clients write it, is understood too.
    public init(from decoder: any Decoder) throws {
        if let container = try? decoder.singleValueContainer(), let id = try? container.decode(String.self) {
            self.init(id)
        } else {
            self.init(try decoder.container(keyedBy: CodingKeys.self).decode(String.self, forKey: .id))
        }
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(id)
    }
}
