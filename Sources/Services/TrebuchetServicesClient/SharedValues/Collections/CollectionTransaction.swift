internal import SharedState

/// Commands that are executed atomically.
public struct CollectionTransaction<Element: Codable & Identifiable & Equatable & Sendable>
where Element.ID: Codable & Sendable {
    private let collection: SyncedCollection<Element>
    /// Documents as changed by the commands so far.
    private var changed: [DocumentID: Document?] = [:]
    private(set) var writes: [DocumentWrite] = []

    init(_ collection: SyncedCollection<Element>) { self.collection = collection }

    /// Returns an item as changed by the commands so far.
    public func item(_ id: Element.ID) -> Element? {
        guard let document = try? document(id).document else { return nil }
        return try? document.value.decode(Element.self)
    }

    /// Creates a document; see ``SharedState/Shared/create(_:expiresIn:onAttempt:onSuccess:onError:onSettled:)``.
    public mutating func create(_ element: Element, expiresIn: Duration? = nil) throws {
        let fields = try CollectionCommands.fields(of: element)
        add(.create(id: try CollectionCommands.id(fields["id"]), fields: fields, expiresIn: expiresIn))
    }

    /// Changes a document: the fields that `change` modifies are sent. Throws as
    /// ``SharedState/Shared/update(_:if:onAttempt:onSuccess:onError:onSettled:_:)`` when it is not among the items.
    public mutating func update(
        _ id: Element.ID, if condition: WriteCondition? = nil, _ change: (inout Element) throws -> Void
    ) throws {
        let (name, document) = try document(id)
        guard let document else {
            throw changed[name] == nil ? collection.missing(name) : CollectionError.notFound(id: name.text)
        }
        guard let before = try? document.value.decode(Element.self) else {
            throw CollectionError.unreadable(id: name.text, reason: document.value.mismatch(Element.self))
        }
        var after = before
        try change(&after)
        let fields = try CollectionCommands.changes(from: before, to: after)
        if let write = CollectionCommands.update(name, fields, if: condition) { add(write.command, if: condition) }
    }

    /// Merges fields; see ``SharedState/Shared/merge(_:_:if:onAttempt:onSuccess:onError:onSettled:)``.
    public mutating func merge(_ id: Element.ID, _ fields: JSONObject, if condition: WriteCondition? = nil) throws {
        add(.merge(id: try document(id).id, fields: fields), if: condition)
    }

    /// Adds to a number; see ``SharedState/Shared/increment(_:_:by:onAttempt:onSuccess:onError:onSettled:)``.
    public mutating func increment(_ id: Element.ID, _ field: String, by amount: some Numeric & Encodable) throws {
        add(.increment(id: try document(id).id, field: field, by: try JSONValue(encoding: amount)))
    }

    /// Deletes a document, if it exists.
    public mutating func delete(_ id: Element.ID, if condition: WriteCondition? = nil) throws {
        add(.delete(id: try document(id).id), if: condition)
    }

    /// Adds to an array; see ``SharedState/Shared/link(_:_:to:in:onAttempt:onSuccess:onError:onSettled:)``.
    public mutating func link(
        _ id: Element.ID, _ field: String, to target: some Encodable, in collection: String? = nil
    ) throws {
        add(.link(id: try document(id).id, field: field, target: try JSONValue(encoding: target), in: collection))
    }

    /// Removes a value from an array field of a document.
    public mutating func unlink(_ id: Element.ID, _ field: String, from target: some Encodable) throws {
        add(.unlink(id: try document(id).id, field: field, target: try JSONValue(encoding: target)))
    }

    /// Changes nothing. The transaction fails unless the condition holds for a document; without a condition, unless the
    /// document exists.
    public mutating func check(_ id: Element.ID, if condition: WriteCondition? = nil) throws {
        add(.check(id: try document(id).id), if: condition)
    }

    private func document(_ id: Element.ID) throws -> (id: DocumentID, document: Document?) {
        let name = try CollectionCommands.id(encoding: collection.items[id: id]?.id ?? id)
        return (name, changed[name] ?? collection.displayed[name]?.document)
    }

    private mutating func add(_ command: DocumentCommand, if condition: WriteCondition? = nil) {
        writes.append(DocumentWrite(command, if: condition))
        let before = changed[command.id] ?? collection.displayed[command.id]?.document
        let context = CommandContext(number: 0, time: CollectionClock().now())
        // A command that fails here may succeed at the server, which has documents that this client does not.
        if let after = try? Optional.some(command.perform(on: before, context)) { changed[command.id] = .some(after) }
    }
}
