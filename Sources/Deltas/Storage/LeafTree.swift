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
/// The tree knows nothing of the elements' type: only the end of the way does.
@usableFromInline
struct LeafTree: Sendable {
    /// Elements in a leaf; not fewer than a quarter of it unless the leaf is all there is.
    @usableFromInline static let mostElements = 16
    /// Nodes in another node; not fewer than a quarter of it unless it is the root.
    static let mostChildren = 32

    /// A leaf's own; in other nodes no greater than the labels of the leaves below, and greater than all before them.
    var label: UInt64
    /// Elements in this node and all below.
    @usableFromInline var count: Int
    /// Nil in a node that has children.
    var leaf: AnyLeaf?
    /// Empty at a leaf, and only there.
    var children: [LeafTree]

    @usableFromInline
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

    /// The tree of leaves, given in their order; nil for none.
    @usableFromInline
    init?(joining leaves: [LeafTree]) {
        var nodes = leaves
        while nodes.count > 1 {
            nodes = Self.groups(nodes.count, of: Self.mostChildren).map {
                LeafTree(label: nodes[$0.lowerBound].label, children: Array(nodes[$0]))
            }
        }
        guard let root = nodes.first else { return nil }
        self = root
    }

    /// As few groups as possible, of about the same size, and not full, so that not each of the next insertions splits one.
    @usableFromInline
    static func groups(_ parts: Int, of mostParts: Int) -> [Range<Int>] {
        let size = mostParts - mostParts / 8
        let count = (parts + size - 1) / size
        return (0..<count).map { parts * $0 / count..<parts * ($0 + 1) / count }
    }

    var isLeaf: Bool { children.isEmpty }
    var mostParts: Int { isLeaf ? Self.mostElements : Self.mostChildren }
    var partCount: Int { isLeaf ? count : children.count }

    // MARK: Finding

    /// The leaf that holds the element at an index, and its place in it.
    @usableFromInline
    func leaf(holding index: Int) -> (leaf: AnyLeaf, place: Int) {
        if let leaf { return (leaf, index) }
        let (place, rest) = child(holding: index)
        // In place: an element that is taken out of an array is copied, which counts references.
        return children.withUnsafeBufferPointer { $0[place].leaf(holding: rest) }
    }

    /// The leaf with a label, which there is, and the index of its first element.
    @usableFromInline
    func leaf(labelled label: UInt64) -> (leaf: AnyLeaf, start: Int) {
        if let leaf { return (leaf, 0) }
        let (place, before) = child(labelled: label)
        let (leaf, start) = children.withUnsafeBufferPointer { $0[place].leaf(labelled: label) }
        return (leaf, before + start)
    }

    /// The child that has the leaf with a label, which there is, and how many elements come before it.
    private func child(labelled label: UInt64) -> (place: Int, before: Int) {
        children.withUnsafeBufferPointer { children in
            var place = 0
            var before = 0
            while place + 1 < children.count, children[place + 1].label <= label {
                before += children[place].count
                place += 1
            }
            return (place, before)
        }
    }

    /// The child that holds the element at an index, and the element's index in it.
    func child(holding index: Int) -> (place: Int, rest: Int) {
        children.withUnsafeBufferPointer { children in
            var place = 0
            var rest = index
            // The last child takes what is behind the end too: there an element can be inserted.
            while place < children.count - 1, rest >= children[place].count {
                rest -= children[place].count
                place += 1
            }
            return (place, rest)
        }
    }

    // MARK: Changing

    /// The leaf that holds the element at an index, which no other tree shares, and its place in it.
    @usableFromInline
    mutating func ownLeaf(holding index: Int) -> (leaf: AnyLeaf, place: Int) {
        if isLeaf { return (ownLeaf(), index) }
        let (place, rest) = child(holding: index)
        return children[place].ownLeaf(holding: rest)
    }

    /// The leaf with a label, which there is and which no other tree shares, and the index of its first element.
    @usableFromInline
    mutating func ownLeaf(labelled label: UInt64) -> (leaf: AnyLeaf, start: Int) {
        if isLeaf { return (ownLeaf(), 0) }
        let (place, before) = child(labelled: label)
        let (leaf, start) = children[place].ownLeaf(labelled: label)
        return (leaf, before + start)
    }

    /// The leaf, which no other tree shares.
    mutating func ownLeaf() -> AnyLeaf {
        if !isKnownUniquelyReferenced(&leaf) { leaf = leaf!.copy() }
        return leaf!
    }
}
