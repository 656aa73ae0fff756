/// Finds the name that was probably meant, for error messages.
package enum NearestMatch {
    /// Returns the candidate with the fewest edits, if they are few enough for a typing error.
    package static func find(_ word: String, in candidates: [String]) -> String? {
        let best = candidates.map { ($0, distance(word, $0)) }.min { $0.1 < $1.1 }
        guard let (candidate, edits) = best, edits <= max(2, word.count / 3) else { return nil }
        return candidate
    }

    /// Returns the Levenshtein distance: insertions, deletions and replacements of single characters.
    package static func distance(_ left: String, _ right: String) -> Int {
        let right = Array(right)
        var row = Array(0...right.count)
        for (i, a) in left.enumerated() {
            var diagonal = row[0]
            row[0] = i + 1
            for (j, b) in right.enumerated() {
                let replaced = diagonal + (a == b ? 0 : 1)
                diagonal = row[j + 1]
                row[j + 1] = min(replaced, row[j] + 1, row[j + 1] + 1)
            }
        }
        return row[right.count]
    }
}
