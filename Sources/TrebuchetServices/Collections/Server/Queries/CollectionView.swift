internal import Trebuchet

/// `collection-views/{collections/<name>}/<secret>`: the result of one query, for all who ask for it.
///
/// It lives on the reactor of its collection: what that changes in the result leaves before the answer of the write that did it.
@Trebuchet
distributed actor CollectionView {
    /// Their names begin with it.
    static let prefix = "collection-views/"

    @StreamedState var result: QueryResult = QueryResult()

    /// Who may read it; nil for everybody.
    private let reader: CollectionReader?
    private let name: String
    private let collection: String
    private let host: any QueryHost

    init(
        _ result: QueryResult, named name: String, of reader: CollectionReader?, in collection: String,
        _ host: any QueryHost, actorSystem: TrebuchetActorSystem
    ) {
        self.name = name
        self.reader = reader
        self.collection = collection
        self.host = host
        self.actorSystem = actorSystem
        self.result = result
    }

    /// The actor of the collection whose view has a name; nil for what is no name of a view.
    static func collection(ofView name: String) -> String? {
        let rest = name.utf8.dropFirst(prefix.utf8.count)
        guard rest.first == UInt8(ascii: "{"), let end = rest.firstIndex(of: UInt8(ascii: "}")) else { return nil }
        return String(rest[..<end].dropFirst())
    }

    /// Called on the reactor of both.
    nonisolated func apply(_ change: ResultChange, revision: Int) {
        assumeIsolated { $0.result.apply(change, revision: revision) }
    }

    /// The same, where little of it stays as it is.
    nonisolated func show(_ result: QueryResult, revision: Int) {
        assumeIsolated {
            $0.result = result
            $0.result.revision = revision
        }
    }
}

extension CollectionView {
    static let otherRights = TrebuchetError(.unauthorized, "the rights to read this have changed; open the query again")

    static var _looksAtObservers: Bool { true }

    /// Its name is for those who may open the query, and is not enough for others, nor for those who may not any more.
    func _refusal(ofStream stream: String, to connection: CallerConnection?) -> (any Error)? {
        // First: what changes from then on is heard of. An observer need not have opened the query over the same connection.
        if let connection { host.visitor(connection).follows(self) }
        return isForReader(connection) ? nil : Self.otherRights
    }

    private func isForReader(_ connection: CallerConnection?) -> Bool {
        host.reading(connection?.principal, in: collection).reader == reader
    }

    /// Ends the streams of connections that may not read it any more.
    func rightsChanged(of connections: [CallerConnection]) {
        for connection in connections where !isForReader(connection) {
            connection.endStreams(ofActor: name, Self.otherRights)
        }
    }
}
