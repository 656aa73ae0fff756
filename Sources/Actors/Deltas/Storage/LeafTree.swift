/// A tree of leaves in order. A leaf is found by element index or by label, in a logarithmic number of steps.
///
/// Nodes are values in the arrays of their parents. A change copies the arrays on its path only if a copy of the tree shares
/// them: the copy-on-write of `Array` applies at every level.
///
/// Each leaf has a label, a number that increases from leaf to leaf. `LabelTable` maps an id to the label of its leaf, and
/// descending by label gives the index. A label belongs to a leaf and not to an element: the table changes only when elements
/// change their leaf.
///
/// The tree does not depend on the element type; only the leaves do.
@usableFromInline
struct LeafTree: Sendable {
    /// The maximum number of elements in a leaf. The minimum is a quarter of it, except for a single leaf.
    @usableFromInline static let maximumElements = 16
    /// The maximum number of children of a node. The minimum is a quarter of it, except for the root.
    static let maximumChildren = 32

    /// The label of a leaf. In other nodes: at most the labels of the leaves below, and greater than all before them.
    var label: UInt64
    /// The number of elements in this node and below.
    @usableFromInline var count: Int
    /// The leaf, or nil in a node with children.
    var leaf: AnyLeaf?
    /// The children; empty only at a leaf.
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

    /// Creates a tree of leaves in order; nil without leaves.
    @usableFromInline
    init?(joining leaves: [LeafTree]) {
        var nodes = leaves
        while nodes.count > 1 {
            nodes = Self.groups(nodes.count, of: Self.maximumChildren).map {
                LeafTree(label: nodes[$0.lowerBound].label, children: Array(nodes[$0]))
            }
        }
        guard let root = nodes.first else { return nil }
        self = root
    }

    /// Divides `parts` into as few groups as possible, of similar size. Groups are not full, so that the next insertions do not
    /// each split one.
    @usableFromInline
    static func groups(_ parts: Int, of maximumParts: Int) -> [Range<Int>] {
        let size = maximumParts - maximumParts / 8
        let count = (parts + size - 1) / size
        return (0..<count).map { parts * $0 / count..<parts * ($0 + 1) / count }
    }

    var isLeaf: Bool { children.isEmpty }
    var maximumPartCount: Int { isLeaf ? Self.maximumElements : Self.maximumChildren }
    var partCount: Int { isLeaf ? count : children.count }

    // MARK: Finding

    /// Returns the leaf that holds the element at an index, and the element's position in it.
    @usableFromInline
    func leaf(holding index: Int) -> (leaf: AnyLeaf, position: Int) {
        if let leaf { return (leaf, index) }
        let (position, offset) = child(holding: index)
        // Accessed in place: copying an element out of the array would do reference counting.
        return children.withUnsafeBufferPointer { $0[position].leaf(holding: offset) }
    }

    /// Returns the leaf with a label, which must exist, and the index of its first element.
    @usableFromInline
    func leaf(labelled label: UInt64) -> (leaf: AnyLeaf, start: Int) {
        if let leaf { return (leaf, 0) }
        let (position, before) = child(labelled: label)
        let (leaf, start) = children.withUnsafeBufferPointer { $0[position].leaf(labelled: label) }
        return (leaf, before + start)
    }

    /// Returns the child that contains the leaf with a label, which must exist, and the number of elements before it.
    private func child(labelled label: UInt64) -> (position: Int, before: Int) {
        children.withUnsafeBufferPointer { children in
            var position = 0
            var before = 0
            while position + 1 < children.count, children[position + 1].label <= label {
                before += children[position].count
                position += 1
            }
            return (position, before)
        }
    }

    /// Returns the child that holds the element at an index, and the element's index in it.
    func child(holding index: Int) -> (position: Int, offset: Int) {
        children.withUnsafeBufferPointer { children in
            var position = 0
            var offset = index
            // The last child also takes the index behind the end, where an element can be inserted.
            while position < children.count - 1, offset >= children[position].count {
                offset -= children[position].count
                position += 1
            }
            return (position, offset)
        }
    }

    // MARK: Changing

    /// Returns the leaf that holds the element at an index, unshared with other trees, and the element's position in it.
    @usableFromInline
    mutating func ownLeaf(holding index: Int) -> (leaf: AnyLeaf, position: Int) {
        if isLeaf { return (ownLeaf(), index) }
        let (position, offset) = child(holding: index)
        return children[position].ownLeaf(holding: offset)
    }

    /// Returns the leaf with a label, which must exist, unshared with other trees, and the index of its first element.
    @usableFromInline
    mutating func ownLeaf(labelled label: UInt64) -> (leaf: AnyLeaf, start: Int) {
        if isLeaf { return (ownLeaf(), 0) }
        let (position, before) = child(labelled: label)
        let (leaf, start) = children[position].ownLeaf(labelled: label)
        return (leaf, before + start)
    }

    /// Returns the leaf, unshared with other trees.
    mutating func ownLeaf() -> AnyLeaf {
        if !isKnownUniquelyReferenced(&leaf) { leaf = leaf!.copy() }
        return leaf!
    }
}
