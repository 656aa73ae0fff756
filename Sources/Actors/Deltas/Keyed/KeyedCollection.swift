/// An ordered collection of elements with unique ids that tracks its changes.
///
/// Finding, changing, adding, removing and moving an element, by id or index, takes time logarithmic in the count. This also
/// holds while a copy exists: the two share all nodes except the paths to their differences. Copying takes constant time.
///
/// In JSON it is an array of the elements. As a `@StreamedState` or a part of one (see ``DeltaState``), a change of an element is
/// sent as only that element.
///
/// It keeps one element for each id and never traps for an id. An element whose id is present is not added. When an element gets
/// the id of another, the first of the two stays. ``updateOrAppend(_:)`` replaces instead. The type is no `MutableCollection`,
/// because setting an element may remove another.
public struct KeyedCollection<Element: Codable & Sendable & Identifiable>: Sendable where Element.ID: Sendable {
    @usableFromInline var store: ElementStore<Element>
    @usableFromInline var log: KeyedChangeLog<Element>

    /// Creates an empty collection.
    @inlinable
    public init() { self.init(ElementStore()) }

    @inlinable
    init(_ store: ElementStore<Element>) {
        self.store = store
        log = KeyedChangeLog()
    }

    /// Creates a collection that keeps the first of several elements with the same id.
    @inlinable
    public init(_ elements: some Sequence<Element>) { self.init(ElementStore(elements) { _ in }) }

    // MARK: Finding

    /// Returns the index of the element with this id, or nil.
    @inlinable
    public func index(id: Element.ID) -> Int? { store.index(of: id) }

    /// Returns whether there is an element with this id.
    @inlinable
    public func contains(id: Element.ID) -> Bool { store.contains(id) }

    /// The element with this id.
    ///
    /// Setting nil removes it; setting an element for an absent id appends it. The new element keeps its `id`, even if that
    /// differs from the subscript. To change an element in place, use ``update(id:_:)``.
    @inlinable
    public subscript(id id: Element.ID) -> Element? {
        get { store[id] }
        set {
            guard let newValue else {
                remove(id: id)
                return
            }
            if update(id: id, { $0 = newValue }) == nil { append(newValue) }
        }
    }

    // MARK: Adding

    /// Appends an element unless its id is present. The returned index is that of the element with this id.
    @discardableResult
    @inlinable
    public mutating func append(_ element: Element) -> (inserted: Bool, index: Int) { insert(element, at: count) }

    /// Inserts an element at an index unless its id is present. The returned index is that of the element with this id.
    ///
    /// - Parameter index: clamped to `0...count`.
    @discardableResult
    @inlinable
    public mutating func insert(_ element: Element, at index: Int) -> (inserted: Bool, index: Int) {
        if let present = store.index(of: element.id) { return (false, present) }
        let index = Swift.min(Swift.max(index, 0), count)
        store.insert(element, at: index)
        log.added(element.id, index: index, count: count)
        return (true, index)
    }

    // MARK: Changing

    /// Changes the element with this id in place and returns the body's result, or nil for an absent id.
    ///
    /// When the body gives the element the id of another, the one in front stays and the other is removed. A change of the id is
    /// sent with the whole value.
    @discardableResult
    @inlinable
    public mutating func update<Result>(
        id: Element.ID, _ body: (inout Element) throws -> Result
    ) rethrows -> Result? {
        let count = store.count
        var position = 0
        var hasOtherID = false
        // Runs even if the body throws, because it may have changed the element before.
        defer { if hasOtherID { admit(at: position, insteadOf: id) } }
        return try store.update(id: id) { index in
            position = index
            log.updated(id, index: index, count: count)
        } _: { element in
            defer { hasOtherID = element.id != id }
            return try body(&element)
        }
    }

    /// Indexes an element whose id was changed in place by its new id.
    @usableFromInline
    mutating func admit(at index: Int, insteadOf id: Element.ID) {
        let element = store.remove(at: index, hash: id.hashValue)
        log.discard()
        if let other = store.index(of: element.id) {
            if other < index { return }
            _ = store.remove(at: other)
        }
        store.insert(element, at: index)
    }

    /// Replaces and returns the element with the same id, or appends the new one.
    @discardableResult
    @inlinable
    public mutating func updateOrAppend(_ element: Element) -> Element? {
        guard let index = store.index(of: element.id) else {
            append(element)
            return nil
        }
        log.updated(element.id, index: index, count: count)
        return store.update(index) { present in
            defer { present = element }
            return present
        }
    }

    // MARK: Removing

    /// Removes and returns the element with this id, if there is one.
    @discardableResult
    @inlinable
    public mutating func remove(id: Element.ID) -> Element? {
        guard let index = store.index(of: id) else { return nil }
        let removed = store.remove(at: index)
        log.removed(removed, index: index, count: count)
        return removed
    }

    /// Removes all elements; this is sent as one change.
    @inlinable
    public mutating func removeAll() {
        store = ElementStore()
        log.removedAll()
    }

    // MARK: Reordering

    /// Moves the element with this id so that its new index is `index`. Returns false for an absent id.
    ///
    /// - Parameter index: clamped to the indices of the elements.
    @discardableResult
    @inlinable
    public mutating func move(id: Element.ID, to index: Int) -> Bool {
        guard let present = store.index(of: id) else { return false }
        let index = Swift.min(Swift.max(index, 0), count - 1)
        guard present != index else { return true }
        store.insert(store.remove(at: present), at: index)
        log.moved(from: present, to: index, count: count)
        return true
    }
}
