public import SharedState

/// The awaited forms of the collection commands: each returns when the server has stored the write, and throws when it refuses
/// the write.
@MainActor
extension Shared {
    /// Creates a document, as the form with callbacks does. Returns when the server has stored it. Throws
    /// `CollectionError.alreadyExists` when a document has its id.
    public func create<Element>(
        _ element: Element, expiresIn: Duration? = nil
    ) async throws where Value == SyncedCollection<Element> {
        try await create(element, expiresIn: expiresIn, onAttempt: nil).value
    }

    /// Changes a document that is among the items, as the form with callbacks does. Returns when the server has stored the
    /// change. Throws `conditionFailed` when `condition` does not hold at the server.
    public func update<Element>(
        _ id: Element.ID, if condition: WriteCondition? = nil, _ change: (inout Element) -> Void
    ) async throws where Value == SyncedCollection<Element> {
        try await update(id, if: condition, onAttempt: nil, change).value
    }

    /// Deletes a document, if it exists. Returns when the server has deleted it. Throws `conditionFailed` when `condition` does
    /// not hold at the server.
    public func delete<Element>(
        _ id: Element.ID, if condition: WriteCondition? = nil
    ) async throws where Value == SyncedCollection<Element> {
        try await delete(id, if: condition, onAttempt: nil).value
    }

    /// Adds to a number at the server, as the form with callbacks does. Returns when the server has stored it. Throws
    /// `notANumber` for a field that is not a number.
    public func increment<Element>(
        _ id: Element.ID, _ field: String, by amount: some Numeric & Encodable
    ) async throws where Value == SyncedCollection<Element> {
        try await increment(id, field, by: amount, onAttempt: nil).value
    }

    /// Changes parts of fields, as the form with callbacks does. Returns when the server has stored them. Throws
    /// `conditionFailed` when `condition` does not hold at the server.
    public func merge<Element>(
        _ id: Element.ID, _ fields: JSONObject, if condition: WriteCondition? = nil
    ) async throws where Value == SyncedCollection<Element> {
        try await merge(id, fields, if: condition, onAttempt: nil).value
    }

    /// Sets the remaining lifetime of a document. Returns when the server has stored it. Nil removes the limit.
    public func expire<Element>(
        _ id: Element.ID, in duration: Duration?
    ) async throws where Value == SyncedCollection<Element> {
        try await expire(id, in: duration, onAttempt: nil).value
    }

    /// Executes several commands atomically, as the form with callbacks does. Returns when the server has executed them. Throws
    /// ``TransactionError`` with the command that failed.
    public func transaction<Element>(
        _ body: (inout CollectionTransaction<Element>) throws -> Void
    ) async throws where Value == SyncedCollection<Element> {
        try await transaction(onAttempt: nil, body).value
    }

    /// Adds a value to an array field, as the form with callbacks does. Returns when the server has stored it. Throws
    /// `linkTargetMissing` when `collection` has no such document.
    public func link<Element>(
        _ id: Element.ID, _ field: String, to target: some Encodable, in collection: String? = nil
    ) async throws where Value == SyncedCollection<Element> {
        try await link(id, field, to: target, in: collection, onAttempt: nil).value
    }

    /// Removes a value from an array field. Returns when the server has stored it.
    public func unlink<Element>(
        _ id: Element.ID, _ field: String, from target: some Encodable
    ) async throws where Value == SyncedCollection<Element> {
        try await unlink(id, field, from: target, onAttempt: nil).value
    }
}
