/// The storage of a keyed collection: a tree of leaves, and a table from ids to leaves.
///
/// Code that depends on the element type is inlinable, so that it is specialized where the type is known. The tree and the table
/// do not depend on it and are compiled once.
@usableFromInline
struct ElementStore<Element: Identifiable & Sendable>: Sendable where Element.ID: Sendable {
    @usableFromInline private(set) var tree: LeafTree
    @usableFromInline private(set) var labels = LabelTable()

    @inlinable
    init() { tree = LeafTree(label: LeafTree.firstLabel, leaf: Leaf<Element>([]), count: 0) }

    /// Creates a store that keeps the first of several elements with the same id; `repeated` is called with each duplicate id.
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
        for range in LeafTree.groups(unique.count, of: LeafTree.maximumElements) {
            for element in unique[range] { labels.insert(label, for: element.id.hashValue) }
            nodes.append(LeafTree(label: label, leaf: Leaf(Array(unique[range])), count: range.count))
            label += LeafTree.labelDistance
        }
        if let root = LeafTree(joining: nodes) { tree = root }
    }

    @inlinable var count: Int { tree.count }

    @inlinable
    subscript(index: Int) -> Element {
        let (leaf, position) = tree.leaf(holding: index)
        return Self.typed(leaf).elements[position]
    }

    /// Returns the elements of the leaf that holds the element at an index, and the element's position among them.
    @inlinable
    func elements(around index: Int) -> (elements: [Element], position: Int) {
        let (leaf, position) = tree.leaf(holding: index)
        return (Self.typed(leaf).elements, position)
    }

    @inlinable
    func index(of id: Element.ID) -> Int? {
        let hash = id.hashValue
        for entry in labels.neighbours(of: hash) where entry.hash == hash {
            let (leaf, start) = tree.leaf(labelled: entry.label)
            if let position = Self.position(of: id, in: leaf) { return start + position }
        }
        return nil
    }

    @inlinable
    subscript(id: Element.ID) -> Element? {
        let hash = id.hashValue
        for entry in labels.neighbours(of: hash) where entry.hash == hash {
            let leaf = tree.leaf(labelled: entry.label).leaf
            if let position = Self.position(of: id, in: leaf) { return Self.typed(leaf).elements[position] }
        }
        return nil
    }

    @inlinable
    func contains(_ id: Element.ID) -> Bool { index(of: id) != nil }

    @inlinable
    mutating func insert(_ element: Element, at index: Int) {
        let insertion = LeafTree.InsertedElement(hash: element.id.hashValue) { leaf, position in
            Self.typed(leaf).elements.insert(element, at: position)
        }
        tree.insertAtRoot(insertion, at: index, &labels)
    }

    /// Changes the element at an index. If the body changes the id, the element must be removed with the hash of the old id.
    @inlinable
    mutating func update<Result>(_ index: Int, _ body: (inout Element) throws -> Result) rethrows -> Result {
        let (leaf, position) = tree.ownLeaf(holding: index)
        return try body(&Self.typed(leaf).elements[position])
    }

    /// Changes the element with an id, after a call of `found` with its index; returns nil for an absent id.
    @inlinable
    mutating func update<Result>(
        id: Element.ID, found: (_ index: Int) -> Void, _ body: (inout Element) throws -> Result
    ) rethrows -> Result? {
        let hash = id.hashValue
        for entry in labels.neighbours(of: hash) where entry.hash == hash {
            let (leaf, start) = tree.ownLeaf(labelled: entry.label)
            guard let position = Self.position(of: id, in: leaf) else { continue }
            found(start + position)
            return try body(&Self.typed(leaf).elements[position])
        }
        return nil
    }

    @inlinable
    mutating func remove(at index: Int) -> Element {
        remove(at: index, hash: self[index].id.hashValue)
    }

    /// Removes the element at an index.
    ///
    /// - Parameter hash: the hash of the id by which the element is found.
    @inlinable
    mutating func remove(at index: Int, hash: Int) -> Element {
        let removed = self[index]
        tree.removeAtRoot(at: index, hash: hash, &labels) { leaf, position in
            Self.typed(leaf).elements.remove(at: position)
        }
        return removed
    }

    @inlinable
    static func position(of id: Element.ID, in leaf: AnyLeaf) -> Int? {
        typed(leaf).elements.firstIndex { $0.id == id }
    }

    /// Casts a leaf. The store creates all leaves of its tree, each with elements of this type.
    @inlinable
    static func typed(_ leaf: AnyLeaf) -> Leaf<Element> { unsafeDowncast(leaf, to: Leaf<Element>.self) }
}
