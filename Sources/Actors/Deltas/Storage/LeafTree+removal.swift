extension LeafTree {
    /// Removes the element at an index of the whole tree, whose id has this hash; the body removes it from its leaf.
    @usableFromInline
    mutating func removeAtRoot(
        at index: Int, hash: Int, _ labels: inout LabelTable, _ body: (AnyLeaf, _ position: Int) -> Void
    ) {
        remove(at: index, hash: hash, &labels, body)
        if children.count == 1 { self = children[0] }
    }

    private mutating func remove(
        at index: Int, hash: Int, _ labels: inout LabelTable, _ body: (AnyLeaf, _ position: Int) -> Void
    ) {
        count -= 1
        if isLeaf {
            labels.remove(label, for: hash)
            return body(ownLeaf(), index)
        }
        let (position, offset) = child(holding: index)
        children[position].remove(at: offset, hash: hash, &labels, body)
        if children[position].partCount < children[position].maximumPartCount / 4, children.count > 1 {
            fill(at: max(position, 1), &labels)
        }
    }

    /// Merges a child with its predecessor, and splits the result again if it is too large.
    private mutating func fill(at position: Int, _ labels: inout LabelTable) {
        let right = children.remove(at: position)
        children[position - 1].append(right, &labels)
        guard children[position - 1].partCount > children[position - 1].maximumPartCount else { return }
        children.insert(children[position - 1].splitHalf(label: right.label, &labels), at: position)
    }

    /// Appends all parts of the next node to this one.
    private mutating func append(_ other: LeafTree, _ labels: inout LabelTable) {
        if let added = other.leaf {
            for hash in added.hashes() { labels.change(other.label, to: label, for: hash) }
            ownLeaf().append(added)
        }
        children += other.children
        count += other.count
    }

    /// Returns the second half of this node's parts as another node, which gets the label if it is a leaf.
    private mutating func splitHalf(label: UInt64, _ labels: inout LabelTable) -> LeafTree {
        guard isLeaf else { return splitNode() }
        let middle = count / 2
        let half = LeafTree(label: label, leaf: ownLeaf().split(at: middle), count: count - middle)
        count = middle
        for hash in half.leaf!.hashes() { labels.change(self.label, to: label, for: hash) }
        return half
    }
}
