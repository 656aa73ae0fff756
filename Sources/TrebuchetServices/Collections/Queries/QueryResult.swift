internal import Trebuchet

/// What a query finds: the state that clients observe.
struct QueryResult: DeltaRecord, Equatable {
    /// Of the last write that it shows; every write of a connection is shown in the queries which that has open.
    @DeltaValue var revision = 0
    var documents = KeyedCollection<Document>()

    static let deltaMembers: [DeltaMember<QueryResult>] = [
        DeltaMember("revision", \._revision), DeltaMember("documents", \.documents),
    ]
}

/// Where the result of a query is observed.
struct QueryTicket: Codable, Sendable, Hashable {
    /// The name of the actor: a secret of those who may read it.
    let view: String
}
