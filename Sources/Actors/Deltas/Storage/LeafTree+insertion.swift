extension LeafTree {
    /// An element to be inserted: the hash of its id, and the closure that inserts it into a leaf.
    @usableFromInline
    struct InsertedElement {
        let hash: Int
        let insert: (AnyLeaf, _ position: Int) -> Void

        @usableFromInline
        init(hash: Int, insert: @escaping (AnyLeaf, _ position: Int) -> Void) {
            self.hash = hash
            self.insert = insert
        }
    }

    /// The result of an insertion into a node.
    enum Insertion {
        case done
        /// The node was full: the value is its second half.
        case split(LeafTree)
        /// The insertion failed without changes: a leaf is full and there is no free label between it and the next.
        case noLabel
    }

    /// The position of a node among the others.
    struct Neighbors {
        /// True if the node contains the first leaf of the tree.
        let isFirst: Bool
        /// A bound: at most the labels behind this node.
        let end: UInt64

        static let root = Neighbors(isFirst: true, end: .max)
    }

    /// The default distance of labels. It allows 40 splits between two leaves, and 8 million leaves on either side of the first.
    @usableFromInline static let labelDistance: UInt64 = 1 << 40
    @usableFromInline static let firstLabel: UInt64 = 1 << 63

    /// Inserts an element into the whole tree.
    @usableFromInline
    mutating func insertAtRoot(_ element: InsertedElement, at index: Int, _ labels: inout LabelTable) {
        switch insert(element, at: index, .root, &labels) {
        case .done: return
        case .split(let half): self = LeafTree(label: label, children: [self, half])
        case .noLabel:
            spreadAllLabels(&labels)
            insertAtRoot(element, at: index, &labels)
        }
    }

    private mutating func insert(
        _ element: InsertedElement, at index: Int, _ surroundings: Neighbors, _ labels: inout LabelTable
    ) -> Insertion {
        if isLeaf { return insertInLeaf(element, at: index, surroundings, &labels) }
        let (position, offset) = child(holding: index)
        let neighbors = Neighbors(
            isFirst: surroundings.isFirst && position == 0,
            end: position + 1 < children.count ? children[position + 1].label : surroundings.end)
        switch children[position].insert(element, at: offset, neighbors, &labels) {
        case .done:
            count += 1
            return .done
        case .split(let half):
            count += 1
            children.insert(half, at: position + 1)
            label = min(label, children[0].label)
            return children.count > Self.maximumChildren ? .split(splitNode()) : .done
        case .noLabel:
            guard spreadLabels(surroundings, &labels) else { return .noLabel }
            return insert(element, at: index, surroundings, &labels)
        }
    }

    private mutating func insertInLeaf(
        _ element: InsertedElement, at index: Int, _ surroundings: Neighbors, _ labels: inout LabelTable
    ) -> Insertion {
        guard count == Self.maximumElements else {
            element.insert(ownLeaf(), index)
            count += 1
            labels.insert(label, for: element.hash)
            return .done
        }
        guard let free = freeLabel(surroundings) else { return .noLabel }
        // Insertions at one end fill the leaves there instead of leaving them half empty.
        let quarter = Self.maximumElements / 4
        let middle = index == 0 ? quarter : index == count ? count - quarter : count / 2
        let present = label
        var half = LeafTree(label: max(free, present), leaf: ownLeaf().split(at: middle), count: count - middle)
        count = middle
        label = min(free, present)
        for hash in (free < present ? leaf! : half.leaf!).hashes() { labels.change(present, to: free, for: hash) }
        // Neither half is full.
        if index < middle {
            _ = insertInLeaf(element, at: index, surroundings, &labels)
        } else {
            _ = half.insertInLeaf(element, at: index - middle, surroundings, &labels)
        }
        return .split(half)
    }

    /// Returns a label for a new leaf: before this one if it is the first, otherwise behind it.
    private func freeLabel(_ surroundings: Neighbors) -> UInt64? {
        if surroundings.isFirst, label > Self.labelDistance { return label - Self.labelDistance }
        let gap = surroundings.end - label
        return gap < 2 ? nil : label + min(gap / 2, Self.labelDistance)
    }

    mutating func splitNode() -> LeafTree {
        let middle = children.count / 2
        let half = LeafTree(label: children[middle].label, children: Array(children[middle...]))
        children.removeSubrange(middle...)
        count -= half.count
        return half
    }

    // MARK: Labels

    /// Distributes the labels of all leaves below evenly. Returns false if too few are free for this to last.
    ///
    /// The smallest subtree with enough labels is relabelled, so that many insertions at one place have a low amortized cost.
    private mutating func spreadLabels(_ surroundings: Neighbors, _ labels: inout LabelTable) -> Bool {
        let distance = (surroundings.end - label) / UInt64(leafCount)
        guard distance >= 1 << 16 else { return false }
        var next = label
        setLabels(&next, distance: min(distance, Self.labelDistance), &labels)
        return true
    }

    /// Distributes the labels of the whole tree, with free labels at both ends.
    mutating func spreadAllLabels(_ labels: inout LabelTable) {
        var next = Self.firstLabel / 2
        setLabels(&next, distance: min(Self.firstLabel / UInt64(leafCount), Self.labelDistance), &labels)
    }

    private mutating func setLabels(_ next: inout UInt64, distance: UInt64, _ labels: inout LabelTable) {
        if let leaf {
            for hash in leaf.hashes() { labels.change(label, to: next, for: hash) }
        }
        label = next
        if isLeaf { next += distance }
        for position in children.indices { children[position].setLabels(&next, distance: distance, &labels) }
    }

    private var leafCount: Int { isLeaf ? 1 : children.reduce(0) { $0 + $1.leafCount } }
}
