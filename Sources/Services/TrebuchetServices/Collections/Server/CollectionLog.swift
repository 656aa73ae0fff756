internal import Trebuchet

/// The log of collections: store failures and refusals. Each kind has at most one line a second, with the number of omitted
/// ones. It never contains tokens or contents of documents.
final class CollectionLog: Sendable {
    private let failures: RejectionLog
    private let refusals: RejectionLog

    init(_ server: TrebuchetServer) {
        failures = RejectionLog { [weak server] in server?.log($0, .error) }
        refusals = RejectionLog { [weak server] in server?.log($0) }
    }

    /// Logs a failure of the store.
    func failure(_ line: String) { failures.logLine(line) }

    func refusal(_ what: String) { refusals.logLine("refused \(what)") }

    /// Logs a refusal by a rule or limit. Errors that occur in correct apps are not logged.
    func refusal(_ error: CollectionError, of what: String, in collection: String, by connection: CallerConnection) {
        guard error.isReportable else { return }
        refusal("\(what) in collection '\(collection)' to \(Self.name(connection)): \(error)")
    }

    /// Logs a mutation that was not executed because other writes change its documents again and again.
    func contention(in collection: String, by connection: CallerConnection) {
        refusal(
            "a large transaction in collection '\(collection)' to \(Self.name(connection)): other writes change its documents"
        )
    }

    /// Returns the principal of a connection, or its address when it is not signed in.
    static func name(_ connection: CallerConnection) -> String {
        let address = connection.remoteAddress.map { " at \($0.host)" } ?? ""
        return connection.principal.map { "'\($0.id)'\(address)" } ?? "somebody\(address)"
    }
}

extension CollectionError {
    fileprivate var isReportable: Bool {
        switch self {
        case .forbidden, .documentTooLarge, .tooManyDocuments, .collectionTooLarge, .shareUsedUp, .tooManyCollections,
            .tooManyQueries, .clientTooLarge, .serverTooLarge, .rateLimited, .tooDeep, .tooManyCommands:
            true
        default: false
        }
    }
}
