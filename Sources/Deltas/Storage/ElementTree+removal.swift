extension ElementTree {
    mutating func remove(at index: Int, _ labels: inout LabelTable<Element.ID>) -> Element {
        count -= 1
        if isLeaf {
            let removed = elements.remove(at: index)
            labels.remove(removed.id)
            return removed
        }
        let (place, rest) = child(holding: index)
        let removed = children[place].remove(at: rest, &labels)
        if children[place].partCount < Self.fewestParts, children.count > 1 {
            fill(at: max(place, 1), &labels)
        }
        return removed
    }

    /// Puts a child's parts to those of the child before it, or as many as make both about alike.
    private mutating func fill(at place: Int, _ labels: inout LabelTable<Element.ID>) {
        let right = children.remove(at: place)
        let leftCount = children[place - 1].partCount
        let total = leftCount + right.partCount
        guard total > Self.mostParts else { return children[place - 1].append(right, &labels) }
        let (left, middle) = (children[place - 1], total / 2)
        if left.isLeaf {
            let all = left.elements + right.elements
            for moved in all[min(leftCount, middle)..<max(leftCount, middle)] {
                labels.set(leftCount < middle ? left.label : right.label, for: moved.id)
            }
            children[place - 1] = ElementTree(label: left.label, elements: Array(all[..<middle]))
            children.insert(ElementTree(label: right.label, elements: Array(all[middle...])), at: place)
        } else {
            let all = left.children + right.children
            children[place - 1] = ElementTree(label: left.label, children: Array(all[..<middle]))
            children.insert(ElementTree(label: all[middle].label, children: Array(all[middle...])), at: place)
        }
    }

    /// Takes all parts of the node that comes behind this one.
    private mutating func append(_ other: ElementTree, _ labels: inout LabelTable<Element.ID>) {
        for element in other.elements { labels.set(label, for: element.id) }
        elements += other.elements
        children += other.children
        count += other.count
    }
}
