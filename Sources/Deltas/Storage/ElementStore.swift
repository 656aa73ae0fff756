/// Elements in order with their ids: the tree of leaves, and the table that leads from an id into it.
///
/// What knows the type of the elements is inlinable, so that it is made for that type where the elements are known; what does not, the
/// tree and the table, is compiled once.
@usableFromInline
struct ElementStore<Element: Identifiable & Sendable>: Sendable where Element.ID: Sendable {
    @usableFromInline private(set) var tree: LeafTree
    @usableFromInline private(set) var labels = LabelTable()

    @inlinable
    init() { tree = LeafTree(label: LeafTree.firstLabel, leaf: Leaf<Element>([]), count: 0) }

    /// Keeps the first of several elements with one id; `repeated` is called with that.
    @inlinable
    init(_ elements: some Sequence<Element>, repeated: (Element.ID) throws -> Void) rethrows {
        self.init()
        var ids = Set<Element.ID>(minimumCapacity: elements.underestimatedCount)
        var unique: [Element] = []
        unique.reserveCapacity(elements.underestimatedCount)
        for element in elements {
            if ids.insert(element.id).inserted { unique.append(element) } else { try repeated(element.id) }
        }
        var label = LeafTree.firstLabel
        var nodes: [LeafTree] = []
        for range in LeafTree.groups(unique.count, of: LeafTree.mostElements) {
            for element in unique[range] { labels.add(label, for: element.id.hashValue) }
            nodes.append(LeafTree(label: label, leaf: Leaf(Array(unique[range])), count: range.count))
            label += LeafTree.labelDistance
        }
        if let root = LeafTree(joining: nodes) { tree = root }
    }

    @inlinable var count: Int { tree.count }

    @inlinable
    subscript(index: Int) -> Element {
        let (leaf, place) = tree.leaf(holding: index)
        return Self.typed(leaf).elements[place]
    }

    /// The elements of the leaf that holds the element at an index, and its place among them.
    @inlinable
    func elements(around index: Int) -> (elements: [Element], place: Int) {
        let (leaf, place) = tree.leaf(holding: index)
        return (Self.typed(leaf).elements, place)
    }

    @inlinable
    func index(of id: Element.ID) -> Int? {
        let hash = id.hashValue
        for entry in labels.neighbours(of: hash) where entry.hash == hash {
            let (leaf, start) = tree.leaf(labelled: entry.label)
            if let place = Self.place(of: id, in: leaf) { return start + place }
        }
        return nil
    }

    @inlinable
    subscript(id: Element.ID) -> Element? {
        let hash = id.hashValue
        for entry in labels.neighbours(of: hash) where entry.hash == hash {
            let leaf = tree.leaf(labelled: entry.label).leaf
            if let place = Self.place(of: id, in: leaf) { return Self.typed(leaf).elements[place] }
        }
        return nil
    }

    @inlinable
    func contains(_ id: Element.ID) -> Bool { index(of: id) != nil }

    @inlinable
    mutating func insert(_ element: Element, at index: Int) {
        let newcomer = LeafTree.Newcomer(hash: element.id.hashValue) { leaf, place in
            Self.typed(leaf).elements.insert(element, at: place)
        }
        tree.insertAtRoot(newcomer, at: index, &labels)
    }

    /// Where the body changes the id, the element has to be removed with the old one's hash.
    @inlinable
    mutating func update<Result>(_ index: Int, _ body: (inout Element) throws -> Result) rethrows -> Result {
        let (leaf, place) = tree.ownLeaf(holding: index)
        return try body(&Self.typed(leaf).elements[place])
    }

    /// The same of the element with an id; nil when there is none. `found` is told its index before.
    @inlinable
    mutating func update<Result>(
        id: Element.ID, found: (_ index: Int) -> Void, _ body: (inout Element) throws -> Result
    ) rethrows -> Result? {
        let hash = id.hashValue
        for entry in labels.neighbours(of: hash) where entry.hash == hash {
            let (leaf, start) = tree.ownLeaf(labelled: entry.label)
            guard let place = Self.place(of: id, in: leaf) else { continue }
            found(start + place)
            return try body(&Self.typed(leaf).elements[place])
        }
        return nil
    }

    @inlinable
    mutating func remove(at index: Int) -> Element {
        remove(at: index, hash: self[index].id.hashValue)
    }

    /// - Parameter hash: that of the id by which the element is found.
    @inlinable
    mutating func remove(at index: Int, hash: Int) -> Element {
        let removed = self[index]
        tree.removeAtRoot(at: index, hash: hash, &labels) { leaf, place in
            Self.typed(leaf).elements.remove(at: place)
        }
        return removed
    }

    @inlinable
    static func place(of id: Element.ID, in leaf: AnyLeaf) -> Int? {
        typed(leaf).elements.firstIndex { $0.id == id }
    }

    /// All leaves of a store's tree are made by it, of its elements.
    @inlinable
    static func typed(_ leaf: AnyLeaf) -> Leaf<Element> { unsafeDowncast(leaf, to: Leaf<Element>.self) }
}
