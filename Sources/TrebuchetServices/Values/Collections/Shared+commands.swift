public import SharedState

/// Commands beside those of whole elements; all go as `Shared+collection.swift` says.
@MainActor
extension Shared {
    /// Adds to a number: what others add at the same time counts too. Exact for whole numbers; a field that is absent is 0.
    /// Refused with `notANumber`, and with `numberOverflow` for what would be larger than an `Int64`.
    ///
    /// - Parameter field: the name in JSON.
    @discardableResult
    public func increment<Element>(
        _ id: Element.ID, _ field: String, by amount: some Numeric & Encodable,
        onAttempt: (@MainActor () -> Void)? = nil, onSuccess: (@MainActor () -> Void)? = nil,
        onError: (@MainActor (any Error) -> Void)? = nil,
        onSettled: (@MainActor (Result<Void, any Error>) -> Void)? = nil
    ) -> OperationCall<Void> where Value == SyncedCollection<Element> {
        write(onAttempt, onSuccess, onError, onSettled) {
            let amount = try JSONValue(encoding: amount)
            return DocumentWrite(.increment(id: try documentID(id), field: field, by: amount))
        }
    }

    /// Changes parts of fields, and leaves what is beside them as others have made it: a merge patch (RFC 7396). Null removes.
    ///
    ///     $people.merge("1", ["address": .object(["city": .string("Bonn")])])
    ///
    /// - Parameter condition: what must hold at the server for it to be done; else it is refused with `conditionFailed`.
    @discardableResult
    public func merge<Element>(
        _ id: Element.ID, _ fields: JSONObject, if condition: WriteCondition? = nil,
        onAttempt: (@MainActor () -> Void)? = nil, onSuccess: (@MainActor () -> Void)? = nil,
        onError: (@MainActor (any Error) -> Void)? = nil,
        onSettled: (@MainActor (Result<Void, any Error>) -> Void)? = nil
    ) -> OperationCall<Void> where Value == SyncedCollection<Element> {
        write(onAttempt, onSuccess, onError, onSettled) {
            DocumentWrite(.merge(id: try documentID(id), fields: fields), if: condition)
        }
    }

    /// Says anew how long there is a document, from now on; nil for as long as nobody deletes it.
    @discardableResult
    public func expire<Element>(
        _ id: Element.ID, in duration: Duration?,
        onAttempt: (@MainActor () -> Void)? = nil, onSuccess: (@MainActor () -> Void)? = nil,
        onError: (@MainActor (any Error) -> Void)? = nil,
        onSettled: (@MainActor (Result<Void, any Error>) -> Void)? = nil
    ) -> OperationCall<Void> where Value == SyncedCollection<Element> {
        write(onAttempt, onSuccess, onError, onSettled) {
            DocumentWrite(.expire(id: try documentID(id), expiresIn: duration))
        }
    }

    /// Does several commands at once or, when one of them is refused, none: then it fails with a ``TransactionError``. Others never
    /// see a part of it. At most 100 commands, each of which counts as a write.
    ///
    ///     $accounts.transaction { accounts in
    ///         try accounts.increment("ada", "balance", by: -5)
    ///         try accounts.increment("bob", "balance", by: 5)
    ///     }
    @discardableResult
    public func transaction<Element>(
        onAttempt: (@MainActor () -> Void)? = nil, onSuccess: (@MainActor () -> Void)? = nil,
        onError: (@MainActor (any Error) -> Void)? = nil,
        onSettled: (@MainActor (Result<Void, any Error>) -> Void)? = nil,
        _ body: (inout CollectionTransaction<Element>) throws -> Void
    ) -> OperationCall<Void> where Value == SyncedCollection<Element> {
        writeAll(onAttempt, onSuccess, onError, onSettled) {
            var transaction = CollectionTransaction(wrappedValue)
            try body(&transaction)
            return transaction.writes
        }
    }
}
