internal import SharedState

/// Commands that are done at once or not at all.
public struct CollectionTransaction<Element: Codable & Identifiable & Equatable & Sendable>
where Element.ID: Codable & Sendable {
    private let collection: SyncedCollection<Element>
    /// Documents as the commands up to now make them.
    private var changed: [DocumentID: Document?] = [:]
    private(set) var writes: [DocumentWrite] = []

    init(_ collection: SyncedCollection<Element>) { self.collection = collection }

    /// An item, as the commands up to now make it.
    public func item(_ id: Element.ID) -> Element? {
        guard let document = try? document(id).document else { return nil }
        return try? document.value.decode(Element.self)
    }

    /// As ``SharedState/Shared/create(_:expiresIn:onAttempt:onSuccess:onError:onSettled:)``.
    public mutating func create(_ element: Element, expiresIn: Duration? = nil) throws {
        let fields = try CollectionCommands.fields(of: element)
        add(.create(id: try CollectionCommands.id(fields["id"]), fields: fields, expiresIn: expiresIn))
    }

    /// Changes a document: the fields that differ after `change` are sent. Throws as
    /// ``SharedState/Shared/update(_:if:onAttempt:onSuccess:onError:onSettled:_:)`` when it is not among the items.
    public mutating func update(
        _ id: Element.ID, if condition: WriteCondition? = nil, _ change: (inout Element) throws -> Void
    ) throws {
        let (name, document) = try document(id)
        guard let document else {
            throw changed[name] == nil ? collection.missing(name) : CollectionError.notFound(id: name.text)
        }
        guard let before = try? document.value.decode(Element.self) else {
            throw CollectionError.unreadable(id: name.text, reason: document.value.misfit(Element.self))
        }
        var after = before
        try change(&after)
        let fields = try CollectionCommands.changes(from: before, to: after)
        if let write = CollectionCommands.update(name, fields, if: condition) { add(write.command, if: condition) }
    }

    /// As ``SharedState/Shared/merge(_:_:if:onAttempt:onSuccess:onError:onSettled:)``.
    public mutating func merge(_ id: Element.ID, _ fields: JSONObject, if condition: WriteCondition? = nil) throws {
        add(.merge(id: try document(id).id, fields: fields), if: condition)
    }

    /// As ``SharedState/Shared/increment(_:_:by:onAttempt:onSuccess:onError:onSettled:)``.
    public mutating func increment(_ id: Element.ID, _ field: String, by amount: some Numeric & Encodable) throws {
        add(.increment(id: try document(id).id, field: field, by: try JSONValue(encoding: amount)))
    }

    /// Removes a document, if there is one.
    public mutating func delete(_ id: Element.ID, if condition: WriteCondition? = nil) throws {
        add(.delete(id: try document(id).id), if: condition)
    }

    /// As ``SharedState/Shared/link(_:_:to:in:onAttempt:onSuccess:onError:onSettled:)``.
    public mutating func link(
        _ id: Element.ID, _ field: String, to target: some Encodable, in collection: String? = nil
    ) throws {
        add(.link(id: try document(id).id, field: field, target: try JSONValue(encoding: target), in: collection))
    }

    /// Takes something out of the array that a field of a document is.
    public mutating func unlink(_ id: Element.ID, _ field: String, from target: some Encodable) throws {
        add(.unlink(id: try document(id).id, field: field, target: try JSONValue(encoding: target)))
    }

    /// Changes nothing: the transaction fails unless this holds for a document. Without a condition, unless there is one.
    public mutating func check(_ id: Element.ID, if condition: WriteCondition? = nil) throws {
        add(.check(id: try document(id).id), if: condition)
    }

    private func document(_ id: Element.ID) throws -> (id: DocumentID, document: Document?) {
        let name = try CollectionCommands.id(encoding: collection.items[id: id]?.id ?? id)
        return (name, changed[name] ?? collection.shown[name]?.document)
    }

    private mutating func add(_ command: DocumentCommand, if condition: WriteCondition? = nil) {
        writes.append(DocumentWrite(command, if: condition))
        let before = changed[command.id] ?? collection.shown[command.id]?.document
        let context = CommandContext(number: 0, time: CollectionClock().now())
        // What cannot be done here may be done at the server, which has documents that are not shown.
        if let after = try? Optional.some(command.perform(on: before, context)) { changed[command.id] = .some(after) }
    }
}
