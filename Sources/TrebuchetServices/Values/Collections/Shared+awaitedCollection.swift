public import SharedState

/// The commands of a collection for those who wait: they return when the server has kept the write, and throw what it is
/// refused with.
@MainActor
extension Shared {
    public func create<Element>(
        _ element: Element, expiresIn: Duration? = nil
    ) async throws where Value == SyncedCollection<Element> {
        try await create(element, expiresIn: expiresIn, onAttempt: nil).value
    }

    public func update<Element>(
        _ id: Element.ID, if condition: WriteCondition? = nil, _ change: (inout Element) -> Void
    ) async throws where Value == SyncedCollection<Element> {
        try await update(id, if: condition, onAttempt: nil, change).value
    }

    public func delete<Element>(
        _ id: Element.ID, if condition: WriteCondition? = nil
    ) async throws where Value == SyncedCollection<Element> {
        try await delete(id, if: condition, onAttempt: nil).value
    }

    public func increment<Element>(
        _ id: Element.ID, _ field: String, by amount: some Numeric & Encodable
    ) async throws where Value == SyncedCollection<Element> {
        try await increment(id, field, by: amount, onAttempt: nil).value
    }

    public func merge<Element>(
        _ id: Element.ID, _ fields: JSONObject, if condition: WriteCondition? = nil
    ) async throws where Value == SyncedCollection<Element> {
        try await merge(id, fields, if: condition, onAttempt: nil).value
    }

    public func expire<Element>(
        _ id: Element.ID, in duration: Duration?
    ) async throws where Value == SyncedCollection<Element> {
        try await expire(id, in: duration, onAttempt: nil).value
    }

    public func transaction<Element>(
        _ body: (inout CollectionTransaction<Element>) throws -> Void
    ) async throws where Value == SyncedCollection<Element> {
        try await transaction(onAttempt: nil, body).value
    }

    public func link<Element>(
        _ id: Element.ID, _ field: String, to target: some Encodable, in collection: String? = nil
    ) async throws where Value == SyncedCollection<Element> {
        try await link(id, field, to: target, in: collection, onAttempt: nil).value
    }

    public func unlink<Element>(
        _ id: Element.ID, _ field: String, from target: some Encodable
    ) async throws where Value == SyncedCollection<Element> {
        try await unlink(id, field, from: target, onAttempt: nil).value
    }
}
