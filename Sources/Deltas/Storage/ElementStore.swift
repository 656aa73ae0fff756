/// Elements in order with their ids: the tree, and the table that leads from an id into it.
struct ElementStore<Element: Identifiable & Sendable>: Sendable where Element.ID: Sendable {
    private(set) var tree = ElementTree<Element>(label: ElementTree<Element>.firstLabel, elements: [])
    private(set) var labels = LabelTable<Element.ID>()

    init() {}

    /// Nil when two elements have one id; `repeated` is called with it.
    init?(_ elements: some Sequence<Element>, repeated: (Element.ID) -> Void) {
        typealias Tree = ElementTree<Element>
        // Not full, so that not each of the next insertions splits a leaf.
        let mostParts = Tree.mostParts * 3 / 4
        var label = Tree.firstLabel
        var nodes: [Tree] = []
        for elements in Self.groups(Array(elements), of: mostParts) {
            for element in elements {
                guard labels.label(of: element.id) == nil else {
                    repeated(element.id)
                    return nil
                }
                labels.set(label, for: element.id)
            }
            nodes.append(Tree(label: label, elements: Array(elements)))
            label += Tree.labelDistance
        }
        while nodes.count > 1 {
            nodes = Self.groups(nodes, of: mostParts).map { Tree(label: $0.first!.label, children: Array($0)) }
        }
        if let root = nodes.first { tree = root }
    }

    /// As few groups as possible, of about the same size.
    private static func groups<Part>(_ parts: [Part], of size: Int) -> [ArraySlice<Part>] {
        let count = (parts.count + size - 1) / size
        return (0..<count).map { parts[parts.count * $0 / count..<parts.count * ($0 + 1) / count] }
    }

    var count: Int { tree.count }

    subscript(index: Int) -> Element { tree[index] }

    func index(of id: Element.ID) -> Int? {
        labels.label(of: id).flatMap { tree.index(of: id, label: $0) }
    }

    func contains(_ id: Element.ID) -> Bool { labels.label(of: id) != nil }

    mutating func insert(_ element: Element, at index: Int) {
        switch tree.insert(element, at: index, .root, &labels) {
        case .done: return
        case .split(let half):
            tree = ElementTree(label: tree.label, children: [tree, half])
        case .noLabel:
            tree.spreadAllLabels(&labels)
            insert(element, at: index)
        }
    }

    /// The body must not change the id.
    mutating func update<Result>(_ index: Int, _ body: (inout Element) throws -> Result) rethrows -> Result {
        try tree.update(index, body)
    }

    mutating func remove(at index: Int) -> Element {
        let removed = tree.remove(at: index, &labels)
        if tree.children.count == 1 { tree = tree.children[0] }
        return removed
    }
}
