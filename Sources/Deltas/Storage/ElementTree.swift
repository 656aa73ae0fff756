/// Elements in order, found by index and by id in a number of steps that grows with the logarithm of their count.
///
/// A tree of arrays: leaves hold elements, the nodes above them hold nodes and know how many elements are below. Nodes are
/// values in the arrays of their parents, so a change copies the arrays on the way to it when a copy of the collection
/// shares them, and nothing when none does: what `Array` does for its elements holds for every level.
///
/// Each leaf has a label, a number that grows from leaf to leaf. A table keeps the label of the leaf that an id is in, and
/// so the way from an id to its index is a way down the tree by labels. A label belongs to a leaf and not to an element:
/// the table changes only when elements change their leaf.
struct ElementTree<Element: Identifiable & Sendable>: Sendable where Element.ID: Sendable {
    /// What a node may hold: elements in a leaf, nodes in another.
    static var mostParts: Int { 16 }
    /// What it holds at least, unless it is the root.
    static var fewestParts: Int { 4 }

    /// A leaf's own; in other nodes no greater than the labels of the leaves below, and greater than all before them.
    var label: UInt64
    /// Elements in this node and all below.
    var count: Int
    /// Of a leaf.
    var elements: [Element]
    /// Of a node that is no leaf, never empty.
    var children: [ElementTree]

    init(label: UInt64, elements: [Element]) {
        self.label = label
        self.elements = elements
        count = elements.count
        children = []
    }

    init(label: UInt64, children: [ElementTree]) {
        self.label = label
        self.children = children
        count = children.reduce(0) { $0 + $1.count }
        elements = []
    }

    var isLeaf: Bool { children.isEmpty }
    var partCount: Int { isLeaf ? elements.count : children.count }

    // MARK: Finding

    subscript(index: Int) -> Element {
        if isLeaf { return elements[index] }
        let (place, rest) = child(holding: index)
        return children[place][rest]
    }

    /// The elements of the leaf that holds the element at an index, and its place among them.
    func leaf(holding index: Int) -> (elements: [Element], place: Int) {
        if isLeaf { return (elements, index) }
        let (place, rest) = child(holding: index)
        return children[place].leaf(holding: rest)
    }

    /// The index of the element with this id, which is in the leaf with this label.
    func index(of id: Element.ID, label: UInt64) -> Int? {
        if isLeaf { return elements.firstIndex { $0.id == id } }
        var place = children.count - 1
        while place > 0, children[place].label > label { place -= 1 }
        guard let rest = children[place].index(of: id, label: label) else { return nil }
        return children[..<place].reduce(rest) { $0 + $1.count }
    }

    /// The child that holds the element at an index, and the element's index in it.
    func child(holding index: Int) -> (place: Int, rest: Int) {
        var place = 0
        var rest = index
        // The last child takes what is behind the end too: there an element can be inserted.
        while place < children.count - 1, rest >= children[place].count {
            rest -= children[place].count
            place += 1
        }
        return (place, rest)
    }

    // MARK: Changing in place

    mutating func update<Result>(_ index: Int, _ body: (inout Element) throws -> Result) rethrows -> Result {
        if isLeaf { return try body(&elements[index]) }
        let (place, rest) = child(holding: index)
        return try children[place].update(rest, body)
    }
}
