/// Elements in order with their ids: the tree of leaves, and the table that leads from an id into it.
struct ElementStore<Element: Identifiable & Sendable>: Sendable where Element.ID: Sendable {
    private(set) var tree = LeafTree(label: LeafTree.firstLabel, leaf: Leaf<Element>([]), count: 0)
    private(set) var labels = LabelTable()

    init() {}

    /// Nil when two elements have one id; `repeated` is called with it.
    init?(_ elements: some Sequence<Element>, repeated: (Element.ID) -> Void) {
        var ids = Set<Element.ID>(minimumCapacity: elements.underestimatedCount)
        var label = LeafTree.firstLabel
        var nodes: [LeafTree] = []
        for elements in Self.groups(Array(elements), of: LeafTree.mostElements) {
            for element in elements {
                guard ids.insert(element.id).inserted else {
                    repeated(element.id)
                    return nil
                }
                labels.add(label, for: element.id.hashValue)
            }
            nodes.append(LeafTree(label: label, leaf: Leaf(Array(elements)), count: elements.count))
            label += LeafTree.labelDistance
        }
        while nodes.count > 1 {
            nodes = Self.groups(nodes, of: LeafTree.mostChildren).map {
                LeafTree(label: $0.first!.label, children: Array($0))
            }
        }
        if let root = nodes.first { tree = root }
    }

    /// As few groups as possible, of about the same size, and not full, so that not each of the next insertions splits one.
    private static func groups<Part>(_ parts: [Part], of mostParts: Int) -> [ArraySlice<Part>] {
        let size = mostParts - mostParts / 8
        let count = (parts.count + size - 1) / size
        return (0..<count).map { parts[parts.count * $0 / count..<parts.count * ($0 + 1) / count] }
    }

    var count: Int { tree.count }

    subscript(index: Int) -> Element {
        let (leaf, place) = tree.leaf(holding: index)
        return Self.typed(leaf).elements[place]
    }

    /// The elements of the leaf that holds the element at an index, and its place among them.
    func elements(around index: Int) -> (elements: [Element], place: Int) {
        let (leaf, place) = tree.leaf(holding: index)
        return (Self.typed(leaf).elements, place)
    }

    func index(of id: Element.ID) -> Int? {
        labels.find(id.hashValue) { label in
            let (leaf, start) = tree.leaf(labelled: label)
            return Self.typed(leaf).elements.firstIndex { $0.id == id }.map { start + $0 }
        }
    }

    func contains(_ id: Element.ID) -> Bool { index(of: id) != nil }

    mutating func insert(_ element: Element, at index: Int) {
        let newcomer = LeafTree.Newcomer(hash: element.id.hashValue) { leaf, place in
            Self.typed(leaf).elements.insert(element, at: place)
        }
        switch tree.insert(newcomer, at: index, .root, &labels) {
        case .done: return
        case .split(let half):
            tree = LeafTree(label: tree.label, children: [tree, half])
        case .noLabel:
            tree.spreadAllLabels(&labels)
            insert(element, at: index)
        }
    }

    /// The body must not change the id.
    mutating func update<Result>(_ index: Int, _ body: (inout Element) throws -> Result) rethrows -> Result {
        try tree.update(index) { leaf, place in try body(&Self.typed(leaf).elements[place]) }
    }

    mutating func remove(at index: Int) -> Element {
        let removed = tree.remove(at: index, hash: self[index].id.hashValue, &labels) { leaf, place in
            Self.typed(leaf).elements.remove(at: place)
        }
        if tree.children.count == 1 { tree = tree.children[0] }
        return removed
    }

    /// All leaves of a store's tree are made by it, of its elements.
    private static func typed(_ leaf: AnyLeaf) -> Leaf<Element> { unsafeDowncast(leaf, to: Leaf<Element>.self) }
}
