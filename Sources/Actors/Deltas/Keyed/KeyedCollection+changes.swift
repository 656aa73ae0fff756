extension KeyedCollection: DeltaState {
    /// Returns the changes since the last call, or nil for more than 64 changes that are also more than a quarter of the
    /// elements.
    ///
    /// A new or decoded collection has none. Copies include the recorded changes: take the changes of only one of several copies.
    @inlinable
    public mutating func takeChanges() -> StateChanges? {
        var changes = StateChanges()
        changes.start = log.start
        guard !log.isFull else {
            log = KeyedChangeLog()
            return nil
        }
        var writer = changes.writer(of: log.steps.count)
        for step in log.steps { write(step, to: &writer) }
        changes.appendOperations(of: writer)
        if !log.steps.isEmpty { log = KeyedChangeLog() }
        changes.end = log.start
        return changes
    }

    @inlinable
    func write(_ step: KeyedChangeLog<Element>.Step, to changes: inout ChangeWriter) {
        switch step {
        case .add(let id, let index): write(.add, index, self[id: id], to: &changes)
        case .addRemoved(let element, let index): changes.append(.add, index, element)
        case .replace(let id, let index):
            write(.replace, index, log.keepsPositions ? store[index] : self[id: id], to: &changes)
        case .remove(let index): changes.append(.remove, index)
        case .move(let from, let to): changes.append(.move, to, from: from)
        case .removeAll: changes.append(replacement: [Element]())
        case .nothing: return
        }
    }

    @inlinable
    func write(
        _ kind: StateChanges.Operation.Kind, _ index: Int, _ element: Element?, to changes: inout ChangeWriter
    ) {
        // An element whose id does not equal itself cannot be found; the whole value includes it.
        if let element { changes.append(kind, index, element) } else { changes.discard() }
    }

    /// Applies changes that were taken from an equal collection.
    ///
    /// Throws ``StateChangesError`` for an invalid index, a duplicate id, a value that is no element, or an operation inside an
    /// element. Then the collection is unchanged.
    public mutating func apply(_ changes: StateChanges) throws {
        try changes.checkIsKnown()
        var changed = store
        for operation in changes.operations { try Self.apply(operation, to: &changed) }
        store = changed
        log = KeyedChangeLog()
    }

    private static func apply(_ operation: StateChanges.Operation, to store: inout ElementStore<Element>) throws {
        guard let last = operation.path.last else { return try replaceAll(operation, in: &store) }
        switch operation.kind {
        case .add:
            let isEnd = last == "-" && operation.path.count == 1
            let index = try isEnd ? store.count : index(operation.path, operation, below: store.count + 1)
            let element = try operation.value(as: Element.self)
            try checkIsNew(element.id, operation, store)
            store.insert(element, at: index)
        case .remove:
            _ = store.remove(at: try index(operation.path, operation, below: store.count))
        case .replace:
            let index = try index(operation.path, operation, below: store.count)
            let element = try operation.value(as: Element.self)
            if store[index].id == element.id { return store.update(index) { $0 = element } }
            try checkIsNew(element.id, operation, store)
            _ = store.remove(at: index)
            store.insert(element, at: index)
        case .move:
            let from = try index(operation.from ?? [], operation, below: store.count)
            let to = try index(operation.path, operation, below: store.count)
            store.insert(store.remove(at: from), at: to)
        }
    }

    private static func replaceAll(
        _ operation: StateChanges.Operation, in store: inout ElementStore<Element>
    ) throws {
        guard operation.kind == .replace else { throw operation.error("the root value can only be replaced") }
        store = try operation.value(as: KeyedCollection.self).store
    }

    private static func checkIsNew(
        _ id: Element.ID, _ operation: StateChanges.Operation, _ store: ElementStore<Element>
    ) throws {
        guard !store.contains(id) else { throw operation.error("the id \(id) already exists") }
    }

    /// Returns the index in a path, written as JSON Pointer requires (RFC 6901): digits without leading zeros.
    private static func index(
        _ path: [String], _ operation: StateChanges.Operation, below limit: Int
    ) throws -> Int {
        guard path.count == 1 else { throw operation.error("elements can only be replaced as a whole") }
        guard let index = Int(path[0]), String(index) == path[0], (0..<limit).contains(index) else {
            throw operation.error("the index is out of range for \(limit) elements")
        }
        return index
    }
}
