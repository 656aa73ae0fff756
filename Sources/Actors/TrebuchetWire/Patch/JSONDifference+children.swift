extension JSONDifference {
    typealias Child = ChangedSpan.Child

    // MARK: Objects

    mutating func compareMembers(_ before: [Child], _ after: [Child], depth: Int) throws(Stop) {
        // While the members are in the same order, no lookup is needed.
        var same = 0
        while same < min(before.count, after.count), before[same].name == after[same].name {
            try compareMember(before[same], after[same], depth: depth)
            same += 1
        }
        var added = Dictionary(
            zip(after[same...].map(\.name), after[same...]), uniquingKeysWith: { _, last in last })
        for member in before[same...] {
            if let other = added.removeValue(forKey: member.name) {
                try compareMember(member, other, depth: depth)
            } else {
                push(member.name)
                try remove()
                pop()
            }
        }
        // In the order of the text, so that equal texts give equal patches.
        for member in after[same...] where added[member.name] != nil {
            push(member.name)
            try appendAddition(member.value)
            pop()
        }
    }

    private mutating func compareMember(_ before: Child, _ after: Child, depth: Int) throws(Stop) {
        if hasSameBytes(before.value, after.value) { return }
        push(before.name)
        try compare(before.value, after.value, depth: depth)
        pop()
    }

    // MARK: Arrays

    mutating func compareElements(_ span: ChangedSpan, depth: Int) throws(Stop) {
        let before = span.oldChildren.map(\.value)
        let after = span.newChildren.map(\.value)
        var start = 0
        while start < min(before.count, after.count), hasSameBytes(before[start], after[start]) { start += 1 }
        var end = 0
        while end < min(before.count, after.count) - start,
            hasSameBytes(before[before.count - 1 - end], after[after.count - 1 - end])
        {
            end += 1
        }
        var cursor = ArrayDiffCursor(
            before: before[start..<before.count - end], after: after[start..<after.count - end])
        // The index of the next element in the array after the previous operations.
        var index = span.frame.index + start
        while let step = cursor.next(old, new) {
            switch step {
            case .same: index += 1
            case .change(let old, let new):
                push(index: index)
                try compare(old, new, depth: depth)
                pop()
                index += 1
            case .insert(let new):
                push(index: index)
                try appendAddition(new)
                pop()
                index += 1
            case .remove:
                push(index: index)
                try remove()
                pop()
            case .append(let new):
                if span.reachesEnd, end == 0 { pushEnd() } else { push(index: index) }
                try appendAddition(new)
                pop()
                index += 1
            case .removeRest(let count):
                // Backwards from the end.
                for offset in (0..<count).reversed() {
                    push(index: index + offset)
                    try remove()
                    pop()
                }
            }
        }
    }
}
