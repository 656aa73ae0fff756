/// Leaves in order, found by the index of an element or by label in a number of steps that grows with the logarithm of
/// their count.
///
/// Nodes are values in the arrays of their parents, so a change copies the arrays on the way to it when a copy of the tree
/// shares them, and nothing when none does: what `Array` does for its elements holds for every level.
///
/// Each leaf has a label, a number that grows from leaf to leaf. A table keeps the label of the leaf that an id is in, and
/// so the way from an id to its index is a way down the tree by labels. A label belongs to a leaf and not to an element:
/// the table changes only when elements change their leaf.
///
/// The tree knows nothing of the elements' type. Code that does is slow where it is not made for one type, as a generic
/// state's is not; so only the end of the way is such code.
struct LeafTree: Sendable {
    /// Elements in a leaf; not fewer than a quarter of it unless the leaf is all there is.
    static let mostElements = 16
    /// Nodes in another node; not fewer than a quarter of it unless it is the root.
    static let mostChildren = 32

    /// A leaf's own; in other nodes no greater than the labels of the leaves below, and greater than all before them.
    var label: UInt64
    /// Elements in this node and all below.
    var count: Int
    /// Nil in a node that has children.
    var leaf: AnyLeaf?
    /// Empty at a leaf, and only there.
    var children: [LeafTree]

    init(label: UInt64, leaf: AnyLeaf, count: Int) {
        self.label = label
        self.leaf = leaf
        self.count = count
        children = []
    }

    init(label: UInt64, children: [LeafTree]) {
        self.label = label
        self.children = children
        count = children.reduce(0) { $0 + $1.count }
    }

    var isLeaf: Bool { children.isEmpty }
    var mostParts: Int { isLeaf ? Self.mostElements : Self.mostChildren }
    var partCount: Int { isLeaf ? count : children.count }

    // MARK: Finding

    /// The leaf that holds the element at an index, and its place in it.
    func leaf(holding index: Int) -> (leaf: AnyLeaf, place: Int) {
        if let leaf { return (leaf, index) }
        let (place, rest) = child(holding: index)
        return children[place].leaf(holding: rest)
    }

    /// The leaf with a label, which there is, and the index of its first element.
    func leaf(labelled label: UInt64) -> (leaf: AnyLeaf, start: Int) {
        if let leaf { return (leaf, 0) }
        var place = 0
        var before = 0
        while place + 1 < children.count, children[place + 1].label <= label {
            before += children[place].count
            place += 1
        }
        let (leaf, start) = children[place].leaf(labelled: label)
        return (leaf, before + start)
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

    // MARK: Changing

    /// Hands out the leaf that holds the element at an index, for changing in place.
    mutating func update<Result>(_ index: Int, _ body: (AnyLeaf, _ place: Int) throws -> Result) rethrows -> Result {
        if isLeaf { return try body(ownLeaf(), index) }
        let (place, rest) = child(holding: index)
        return try children[place].update(rest, body)
    }

    /// The leaf, which no other tree shares.
    mutating func ownLeaf() -> AnyLeaf {
        if !isKnownUniquelyReferenced(&leaf) { leaf = leaf!.copy() }
        return leaf!
    }
}
