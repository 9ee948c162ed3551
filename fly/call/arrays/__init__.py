"""The arrays of an application: views of their memory, annotations, kinds to give back."""
