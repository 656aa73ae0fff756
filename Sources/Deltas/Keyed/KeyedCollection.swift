/// Elements in order, each with an id of its own, that knows what changed in it.
///
/// Changing, adding, removing, moving and finding an element, by id or by index, take about the same time in a collection
/// of ten thousand as in one of ten (they grow with the logarithm of the count), and so they do when a copy is kept: the
/// two share all but the way to what is different. Copying takes constant time.
///
/// In JSON it is an array of the elements. As a `@StreamedState`, or as a part of one (see ``DeltaState``), a change of an
/// element is sent as that element alone.
///
/// An element's id may not change in place. It is no `MutableCollection` for that reason.
public struct KeyedCollection<Element: Codable & Sendable & Identifiable>: Sendable where Element.ID: Sendable {
    @usableFromInline var store: ElementStore<Element>
    @usableFromInline var log: ChangeLog<Element>

    /// A collection without elements.
    @inlinable
    public init() { self.init(ElementStore()) }

    @inlinable
    init(_ store: ElementStore<Element>) {
        self.store = store
        log = ChangeLog()
    }

    /// Traps when two elements have one id.
    @inlinable
    public init(_ elements: some Sequence<Element>) {
        self.init(ElementStore(elements) { preconditionFailure("two elements have the id \($0)") }!)
    }

    // MARK: Finding

    /// Where the element with this id stands.
    @inlinable
    public func index(id: Element.ID) -> Int? { store.index(of: id) }

    /// Whether an element with this id is there.
    @inlinable
    public func contains(id: Element.ID) -> Bool { store.contains(id) }

    /// The element with this id.
    ///
    /// Setting nil removes it; setting an element whose id is not there appends it. Traps when the element has another
    /// id than the subscript. To change an element in place, use ``update(id:_:)``.
    @inlinable
    public subscript(id id: Element.ID) -> Element? {
        get { store[id] }
        set {
            guard let newValue else {
                remove(id: id)
                return
            }
            precondition(newValue.id == id, "an element with the id \(newValue.id) was set at the id \(id)")
            updateOrAppend(newValue)
        }
    }

    // MARK: Adding

    /// Adds an element at the end. Traps when its id is there.
    @inlinable
    public mutating func append(_ element: Element) { insert(element, at: count) }

    /// Adds an element before the one at an index. Traps when its id is there.
    @inlinable
    public mutating func insert(_ element: Element, at index: Int) {
        precondition(!contains(id: element.id), "two elements have the id \(element.id)")
        precondition((0...count).contains(index), "an element was inserted at \(index) of \(count)")
        store.insert(element, at: index)
        log.added(element.id, index: index, count: count)
    }

    // MARK: Changing

    /// Changes the element with this id in place and returns what the body does; nil when there is none.
    ///
    /// Traps when the body changes the element's id.
    @discardableResult
    @inlinable
    public mutating func update<Result>(
        id: Element.ID, _ body: (inout Element) throws -> Result
    ) rethrows -> Result? {
        let count = store.count
        // Also when the body throws: it may have changed something before.
        return try store.update(id: id) { index in
            log.updated(id, index: index, count: count)
        } _: { element in
            defer { precondition(element.id == id, "the id \(id) of an element was changed to \(element.id)") }
            return try body(&element)
        }
    }

    /// Replaces the element with the same id, which is returned, or adds the new one at the end.
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

    /// Removes the element with this id, which is returned, if there is one.
    @discardableResult
    @inlinable
    public mutating func remove(id: Element.ID) -> Element? {
        guard let index = store.index(of: id) else { return nil }
        let removed = store.remove(at: index)
        log.removed(removed, index: index, count: count)
        return removed
    }

    /// Removes all elements; it is sent as one change.
    @inlinable
    public mutating func removeAll() {
        store = ElementStore()
        log.removedAll()
    }

    // MARK: Reordering

    /// Takes the element with this id out and puts it in, so that it stands at an index then; false when there is none.
    ///
    /// Traps when the index is not that of an element.
    @discardableResult
    @inlinable
    public mutating func move(id: Element.ID, to index: Int) -> Bool {
        guard let present = store.index(of: id) else { return false }
        precondition(indices.contains(index), "an element was moved to \(index) of \(count)")
        guard present != index else { return true }
        store.insert(store.remove(at: present), at: index)
        log.moved(from: present, to: index, count: count)
        return true
    }
}
