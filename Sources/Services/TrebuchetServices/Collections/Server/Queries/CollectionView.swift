internal import Trebuchet

/// A view `collection-views/{collections/<name>}/<secret>`: the result of one query, for all its readers.
///
/// It lives on the reactor of its collection, so each change of the result is sent before the response to the write that caused
/// it.
@Trebuchet
distributed actor CollectionView: CollectionViewInterface {
    /// The beginning of the names of views.
    static let prefix = "collection-views/"

    @StreamedState var result: QueryResult = QueryResult()

    /// The reader identity that may read it; nil for all callers.
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

    /// Returns the name of a view's collection actor; nil for any other name.
    static func collection(ofView name: String) -> String? {
        let rest = name.utf8.dropFirst(prefix.utf8.count)
        guard rest.first == UInt8(ascii: "{"), let end = rest.firstIndex(of: UInt8(ascii: "}")) else { return nil }
        return String(rest[..<end].dropFirst())
    }

    /// Applies a change; called on the reactor of both.
    nonisolated func apply(_ change: ResultChange, revision: Int) {
        assumeIsolated { $0.result.apply(change, revision: revision) }
    }

    /// Replaces the result, when little of it stays as it is.
    nonisolated func replaceResult(_ result: QueryResult, revision: Int) {
        assumeIsolated {
            $0.result = result
            $0.result.revision = revision
        }
    }
}

extension CollectionView {
    static let unauthorizedError = TrebuchetError(
        .unauthorized, "the authorization to read has changed; open the query again")

    static var _inspectsObservers: Bool { true }

    /// The name alone does not authorize: a client must be allowed to open the query, and to read it still.
    func _refusal(ofStream stream: String, to connection: CallerConnection?) -> (any Error)? {
        // First, so that no later change of authorization is missed. An observer may have opened the query over another
        // connection.
        if let connection { host.caller(connection).registerActor(self) }
        return isForReader(connection) ? nil : Self.unauthorizedError
    }

    private func isForReader(_ connection: CallerConnection?) -> Bool {
        host.reading(connection?.principal, in: collection).reader == reader
    }

    /// Ends the streams of connections that may not read the result any more.
    func authorizationDidChange(of connections: [CallerConnection]) {
        for connection in connections where !isForReader(connection) {
            connection.endStreams(ofActor: name, Self.unauthorizedError)
        }
    }
}
