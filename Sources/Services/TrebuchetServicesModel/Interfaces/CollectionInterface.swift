package import Distributed
package import TrebuchetActors

/// The calls of a collection.
@Resolvable
package protocol CollectionInterface: DistributedActor where ActorSystem == TrebuchetActorSystem {
    distributed func commit(
        _ mutations: [EncodedJSON], from client: String
    ) async throws(CollectionError) -> [MutationOutcome]
    distributed func commit(
        _ mutations: [EncodedJSON], from client: String, as account: String
    ) async throws(CollectionError) -> [MutationOutcome]
    distributed func open(_ query: EncodedJSON) async throws(CollectionError) -> QueryTicket
    distributed func get(_ query: EncodedJSON) async throws(CollectionError) -> EncodedJSON
    distributed func close(_ query: EncodedJSON) async throws(CollectionError)
}

/// A reference to a collection of a server.
package typealias RemoteCollection = $CollectionInterface

/// The stream of a view of a collection, which has the result of one query.
@Resolvable
package protocol CollectionViewInterface: DistributedActor where ActorSystem == TrebuchetActorSystem {}

extension CollectionViewInterface {
    package nonisolated var observeResult: StateObservation<Self, QueryResult> { observation("observeResult") }
}

/// A reference to a view of a collection of a server.
package typealias RemoteCollectionView = $CollectionViewInterface
