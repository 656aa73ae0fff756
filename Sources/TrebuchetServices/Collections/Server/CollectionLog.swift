internal import Trebuchet

/// What collections tell in the server's log: failures of the store, and who was refused what. Each once a second at most, with how
/// many there were before it; never tokens, nor what documents hold.
final class CollectionLog: Sendable {
    private let failures: RefusalLog
    private let refusals: RefusalLog

    init(_ server: TrebuchetServer) {
        failures = RefusalLog { [weak server] in server?.log($0, .error) }
        refusals = RefusalLog { [weak server] in server?.log($0) }
    }

    /// The store did not do what it was asked for.
    func failure(_ line: String) { failures.note(line) }

    func refusal(_ what: String) { refusals.note("refused \(what)") }

    /// Tells of what a rule or a limit was in the way of; what happens in the best of apps is not told.
    func refusal(_ error: CollectionError, of what: String, in collection: String, by connection: CallerConnection) {
        guard error.isToBeTold else { return }
        refusal("\(what) in collection '\(collection)' to \(Self.name(connection)): \(error)")
    }

    /// Who it is: a principal, or where somebody comes from who is not signed in.
    static func name(_ connection: CallerConnection) -> String {
        let address = connection.remoteAddress.map { " at \($0.host)" } ?? ""
        return connection.principal.map { "'\($0.id)'\(address)" } ?? "somebody\(address)"
    }
}

extension CollectionError {
    fileprivate var isToBeTold: Bool {
        switch self {
        case .forbidden, .documentTooLarge, .tooManyDocuments, .collectionTooLarge, .shareUsedUp, .tooManyCollections,
            .tooManyQueries, .rateLimited, .tooDeep, .tooManyCommands:
            true
        default: false
        }
    }
}
