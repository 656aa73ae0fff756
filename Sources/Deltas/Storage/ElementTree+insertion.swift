extension ElementTree {
    enum Insertion {
        case done
        /// The node was full: this is the second half of it.
        case split(ElementTree)
        /// Nothing has happened: a leaf is full and no label is free between it and the next.
        case noLabel
    }

    /// Where a node is among the others.
    struct Surroundings {
        /// No leaf comes before this node's first.
        let isFirst: Bool
        /// No more than the labels behind this node.
        let end: UInt64

        static var root: Surroundings { Surroundings(isFirst: true, end: .max) }
    }

    /// The distance of labels where nothing limits it: wide enough that a leaf between two can split 40 times, and small
    /// enough for 8 million leaves on either side of the first.
    static var labelDistance: UInt64 { 1 << 40 }
    static var firstLabel: UInt64 { 1 << 63 }

    mutating func insert(
        _ element: Element, at index: Int, _ surroundings: Surroundings, _ labels: inout LabelTable<Element.ID>
    ) -> Insertion {
        if isLeaf { return insertInLeaf(element, at: index, surroundings, &labels) }
        let (place, rest) = child(holding: index)
        let below = Surroundings(
            isFirst: surroundings.isFirst && place == 0,
            end: place + 1 < children.count ? children[place + 1].label : surroundings.end)
        switch children[place].insert(element, at: rest, below, &labels) {
        case .done:
            count += 1
            return .done
        case .split(let half):
            count += 1
            children.insert(half, at: place + 1)
            label = min(label, children[0].label)
            return children.count > Self.mostParts ? .split(splitNode()) : .done
        case .noLabel:
            guard spreadLabels(surroundings, &labels) else { return .noLabel }
            return insert(element, at: index, surroundings, &labels)
        }
    }

    private mutating func insertInLeaf(
        _ element: Element, at index: Int, _ surroundings: Surroundings, _ labels: inout LabelTable<Element.ID>
    ) -> Insertion {
        guard elements.count == Self.mostParts else {
            elements.insert(element, at: index)
            count += 1
            labels.set(label, for: element.id)
            return .done
        }
        guard let free = freeLabel(surroundings) else { return .noLabel }
        // Who adds at one end fills leaves there, instead of leaving them half empty.
        let middle = index == 0 ? Self.fewestParts : index == elements.count ? elements.count - Self.fewestParts : 8
        var half = ElementTree(label: max(free, label), elements: Array(elements[middle...]))
        elements.removeSubrange(middle...)
        count = middle
        label = min(free, label)
        for moved in free == label ? elements : half.elements { labels.set(free, for: moved.id) }
        // Neither half is full.
        if index < middle {
            _ = insertInLeaf(element, at: index, surroundings, &labels)
        } else {
            _ = half.insertInLeaf(element, at: index - middle, surroundings, &labels)
        }
        return .split(half)
    }

    /// A label for another leaf: behind this one, or before it when nothing is there.
    private func freeLabel(_ surroundings: Surroundings) -> UInt64? {
        if surroundings.isFirst, label > Self.labelDistance { return label - Self.labelDistance }
        let gap = surroundings.end - label
        return gap < 2 ? nil : label + min(gap / 2, Self.labelDistance)
    }

    private mutating func splitNode() -> ElementTree {
        let middle = children.count / 2
        let half = ElementTree(label: children[middle].label, children: Array(children[middle...]))
        children.removeSubrange(middle...)
        count -= half.count
        return half
    }

    // MARK: Labels

    /// Spreads the labels of all leaves below evenly; false when too few are free for it to last.
    ///
    /// The smallest part of the tree that has labels enough is spread, so that many elements inserted at one place cost
    /// each of them little.
    private mutating func spreadLabels(_ surroundings: Surroundings, _ labels: inout LabelTable<Element.ID>) -> Bool {
        let distance = (surroundings.end - label) / UInt64(leafCount)
        guard distance >= 1 << 16 else { return false }
        var next = label
        setLabels(&next, distance: min(distance, Self.labelDistance), &labels)
        return true
    }

    /// Spreads the labels of the whole tree, with room at both ends.
    mutating func spreadAllLabels(_ labels: inout LabelTable<Element.ID>) {
        var next = Self.firstLabel / 2
        setLabels(&next, distance: min(Self.firstLabel / UInt64(leafCount), Self.labelDistance), &labels)
    }

    private mutating func setLabels(
        _ next: inout UInt64, distance: UInt64, _ labels: inout LabelTable<Element.ID>
    ) {
        label = next
        if isLeaf {
            for element in elements { labels.set(label, for: element.id) }
            next += distance
        }
        for place in children.indices { children[place].setLabels(&next, distance: distance, &labels) }
    }

    private var leafCount: Int { isLeaf ? 1 : children.reduce(0) { $0 + $1.leafCount } }
}
