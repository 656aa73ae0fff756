print("trebuchet")
