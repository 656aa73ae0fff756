public import SharedState

/// The commands of a collection for those who wait: they return when the server has kept the write, and throw what it is
/// refused with.
@MainActor
extension Shared {
    /// Adds a document, as the form with callbacks does, and returns when the server has kept it. Throws
    /// `CollectionError.alreadyExists` when there is one with its id.
    public func create<Element>(
        _ element: Element, expiresIn: Duration? = nil
    ) async throws where Value == SyncedCollection<Element> {
        try await create(element, expiresIn: expiresIn, onAttempt: nil).value
    }

    /// Changes a document that is among the items, as the form with callbacks does, and returns when the server has kept the
    /// change. Throws `conditionFailed` when `condition` does not hold there.
    public func update<Element>(
        _ id: Element.ID, if condition: WriteCondition? = nil, _ change: (inout Element) -> Void
    ) async throws where Value == SyncedCollection<Element> {
        try await update(id, if: condition, onAttempt: nil, change).value
    }

    /// Removes a document, if there is one, and returns when the server has. Throws `conditionFailed` when `condition` does
    /// not hold there.
    public func delete<Element>(
        _ id: Element.ID, if condition: WriteCondition? = nil
    ) async throws where Value == SyncedCollection<Element> {
        try await delete(id, if: condition, onAttempt: nil).value
    }

    /// Adds to a number at the server, as the form with callbacks does, and returns when that has kept it. Throws
    /// `notANumber` for a field that is something else.
    public func increment<Element>(
        _ id: Element.ID, _ field: String, by amount: some Numeric & Encodable
    ) async throws where Value == SyncedCollection<Element> {
        try await increment(id, field, by: amount, onAttempt: nil).value
    }

    /// Changes parts of fields, as the form with callbacks does, and returns when the server has kept them. Throws
    /// `conditionFailed` when `condition` does not hold there.
    public func merge<Element>(
        _ id: Element.ID, _ fields: JSONObject, if condition: WriteCondition? = nil
    ) async throws where Value == SyncedCollection<Element> {
        try await merge(id, fields, if: condition, onAttempt: nil).value
    }

    /// Says anew how long there is a document, from now on, and returns when the server has kept that. Nil: until somebody
    /// deletes it.
    public func expire<Element>(
        _ id: Element.ID, in duration: Duration?
    ) async throws where Value == SyncedCollection<Element> {
        try await expire(id, in: duration, onAttempt: nil).value
    }

    /// Does several commands or none, as the form with callbacks does, and returns when the server has done them. Throws
    /// ``TransactionError`` with the one that could not be done.
    public func transaction<Element>(
        _ body: (inout CollectionTransaction<Element>) throws -> Void
    ) async throws where Value == SyncedCollection<Element> {
        try await transaction(onAttempt: nil, body).value
    }

    /// Adds something to the array that a field is, as the form with callbacks does, and returns when the server has. Throws
    /// `linkTargetMissing` when a `collection` is named that has no such document.
    public func link<Element>(
        _ id: Element.ID, _ field: String, to target: some Encodable, in collection: String? = nil
    ) async throws where Value == SyncedCollection<Element> {
        try await link(id, field, to: target, in: collection, onAttempt: nil).value
    }

    /// Takes something out of the array that a field is, and returns when the server has.
    public func unlink<Element>(
        _ id: Element.ID, _ field: String, from target: some Encodable
    ) async throws where Value == SyncedCollection<Element> {
        try await unlink(id, field, from: target, onAttempt: nil).value
    }
}
